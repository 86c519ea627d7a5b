-- How many effects of these levers end in each hour of a period: after its beginning, and at its end at the latest.
select date_trunc('hour', e.until - interval 1 microsecond) + interval 1 hour as ends_at, count(*)::bigint as effects
from effects e
where e.arm_a = 'treated' and list_contains($levers::varchar[], e.lever)
    and ($since::timestamptz is null or e.until > $since) and ($until::timestamptz is null or e.until <= $until)
group by ends_at
order by ends_at
