-- The new evaluations of the batch.
insert into evaluations by name
select * exclude (arrival, is_new) from staged_evaluations where is_new
