-- Values of requests that began from $since to $until and were set aside as impossible, by column and reason, with the trap they fell into.
select "column", reason, count(*) as "values", trap, upstream, min(started_at) as since, max(started_at) as until
from quarantine
where started_at >= $since and started_at <= $until
group by "column", reason, trap, upstream
order by "values" desc, "column", reason
