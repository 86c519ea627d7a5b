-- load_recent_since
-- Since when the newest spans are no more than so many, by slices of ten seconds; at least the newest slice.
with slices as (
    select start_unix_nano // 10_000_000_000 as slice, count(*) as held from spans where start_unix_nano >= $since group by slice
),
counted as (select slice, sum(held) over (order by slice desc) as held from slices)
select greatest($since, coalesce(min(slice) filter (held <= $limit_rows), max(slice)) * 10_000_000_000)::bigint as since
from counted
