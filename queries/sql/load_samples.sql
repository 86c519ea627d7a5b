-- The new samples of the batch.
insert into samples_hot by name
select * exclude (arrival, is_new) from staged_samples where is_new
