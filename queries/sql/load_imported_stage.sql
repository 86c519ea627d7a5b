-- The imported requests at hand, each marked: is it the first of its id and start here, and does the store hold it already?
create or replace temp table staged_imported as
with paired as (
    select
        incoming.*,
        row_number() over (partition by request_id, started_at order by arrival) as place,
        (request_id, started_at) in (select (request_id, started_at) from imported_requests) as is_held
    from incoming
)
select * exclude (place, is_held), place = 1 and not is_held as is_new from paired
