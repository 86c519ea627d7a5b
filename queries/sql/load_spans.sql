-- The new ones of the batch.
insert into spans_hot by name
select * exclude (arrival, is_new, differs) from staged where is_new
