-- title: Impossible values
-- answers: What cannot be true and was set aside, by the trap that it fell into: acceptance above 1, more skipped than asked, a transfer
--   above its link.
-- group: Data
-- param since moment 24h: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- column trap text: what it fell into
-- column upstream text: where the makers of the engine know of it; null where none does
-- column column text: which column of requests
-- column replica text: of which replica; null where it is not known
-- column values count: set aside
-- column of_requests ratio: of the requests of the period
-- column example text: one of the values
-- column reason text: why it cannot be
-- column first_at moment: when the first such request began
-- column last_at moment: when the last one began
select
    trap, upstream, "column", replica, count(*) as "values",
    count(*) / (select count(*) from requests where started_at >= $since::timestamptz and started_at < $until::timestamptz) as of_requests,
    any_value(value) as example, any_value(reason) as reason, min(started_at) as first_at, max(started_at) as last_at
from quarantine
where started_at >= $since::timestamptz and started_at < $until::timestamptz
group by trap, upstream, "column", replica
order by "values" desc
limit 1000
