-- The evaluations at hand, each marked: is it the first of its id here, and does the store hold it already?
create or replace temp table staged_evaluations as
with paired as (
    select
        incoming.*,
        row_number() over (partition by evaluation_id order by arrival) as place,
        evaluation_id in (select evaluation_id from evaluations) as is_held
    from incoming
)
select * exclude (place, is_held), place = 1 and not is_held as is_new from paired
