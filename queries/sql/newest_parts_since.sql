-- Since when the parts of $relation hold about $limit_rows of their newest rows, at least one part; null where all of them hold no more.
with listed as (
    select
        coalesce(first_start, since) as began_at,
        sum("rows") over (order by coalesce(last_start, until) desc, "file" rows between unbounded preceding and 1 preceding) as newer_rows,
        sum("rows") over () as all_rows
    from parts
    where relation = $relation
)
select min(began_at) as since from listed where all_rows > $limit_rows and coalesce(newer_rows, 0) < $limit_rows
