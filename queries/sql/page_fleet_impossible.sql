-- How many values of each replica were set aside as impossible, of requests that began from $since to $until, by column.
select replica, "column", count(*) as "values", any_value(reason order by started_at desc) as reason
from quarantine
where started_at >= $since::timestamptz and started_at < $until::timestamptz and replica is not null
group by replica, "column"
order by "values" desc, replica, "column"
limit 1000
