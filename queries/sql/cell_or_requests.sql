-- How many requests a period may have, by whole parts, and whether its beginning lies where cells are and requests
-- were dropped; without one ($since null) it is what is there of them.
select
    coalesce(sum("rows"), 0)::bigint as held,
    exists (
        select 1 from retention_log d
        where d.relation = 'requests' and ($until::timestamptz is null or d.since < $until::timestamptz)
        and d.until > $since::timestamptz
        and exists (select 1 from cell_periods p where p.started_at < d.until)
    ) as is_gone
from parts
where relation = 'requests' and ($since::timestamptz is null or until > $since::timestamptz)
and ($until::timestamptz is null or since < $until::timestamptz)
