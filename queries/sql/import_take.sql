-- The imported requests that assembly takes next, oldest first.
create or replace temp table working_imports as
select * exclude (sender, received_at, is_taken) from imported_requests where not is_taken order by started_at limit $limit_rows
