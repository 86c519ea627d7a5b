-- Values of requests that began from $since to $until and were set aside as impossible, by column and reason.
select "column", reason, count(*) as "values"
from quarantine
where started_at >= $since and started_at <= $until
group by all
order by "values" desc, "column", reason
