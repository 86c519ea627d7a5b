-- Where a lever stops paying, the newest per segment and key; behind it what it said before it went stale.
select *
from break_even
where lever = $lever
qualify row_number() over (partition by segment, "key" order by since desc) <= 2
order by segment, "key", since desc
