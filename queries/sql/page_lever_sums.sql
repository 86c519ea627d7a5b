-- Both arms of a lever by segment, as sums of a metric's requests over a period, and what they give: the strata behind a total.
select
    segment, arm, sum(n)::bigint as n, sum(num) as numerator, sum(den) as denominator, sum(num) / nullif(sum(den), 0) as value
from cells
where lever = $lever and metric = $metric and block_started_at >= $since::timestamptz and block_started_at < $until::timestamptz
    and ($segment::varchar is null or segment = $segment)
group by all
order by segment, arm
