-- The samples at hand, each marked: is it the first of its series and moment here, and does the store hold it already?
create or replace temp table staged_samples as
with held as (
    select replica, name, labels, observed_at
    from samples
    where observed_at between (select min(observed_at) from incoming) and (select max(observed_at) from incoming)
    and observed_at in (select observed_at from incoming)
),
paired as (
    select
        incoming.*,
        row_number() over (partition by replica, name, labels, observed_at order by arrival) as place,
        (replica, name, labels, observed_at) in (select (replica, name, labels, observed_at) from held) as is_held
    from incoming
)
select * exclude (place, is_held), place = 1 and not is_held as is_new from paired
