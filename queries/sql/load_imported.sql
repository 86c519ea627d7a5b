-- The new imported requests of the batch.
insert into imported_requests by name
select * exclude (arrival, is_new) from staged_imported where is_new
