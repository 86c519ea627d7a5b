-- title: KV transfer over the stated link
-- answers: How well caches are moved from prefill to decode: bytes over wall time against what the link is said to carry. Above 1 the
--   statement or the count is wrong; it is no win.
-- group: Disaggregation
-- param since moment 24h: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- param model text null: this model alone; every one where it is not given
-- column model text: the model
-- column topology text: how the replica is built
-- column prefill_replica text: whence
-- column decode_replica text: whither
-- column requests count: with bytes and time of their transfer
-- column bytes_per_s bytes/s: bytes over wall time
-- column link_peak_bytes_per_s bytes/s: as stated, in one direction; null where nobody said it
-- column of_link ratio: the one over the other
-- column above_link count: requests whose own rate is above what is stated
-- column transfer_p95_s s: time of a transfer that one request in twenty exceeds
-- column of_ttft ratio: transfer time over time to the first token
select
    model, topology, prefill_replica, coalesce(decode_replica, replica) as decode_replica, count(*) as requests,
    sum(kv_transfer_bytes) / sum(kv_transfer_s) as bytes_per_s, median(link_peak_bytes_per_s) as link_peak_bytes_per_s,
    sum(kv_transfer_bytes) filter (link_peak_bytes_per_s > 0) / sum(kv_transfer_s * link_peak_bytes_per_s) as of_link,
    count(*) filter (kv_transfer_bytes / kv_transfer_s > link_peak_bytes_per_s) as above_link,
    quantile_cont(kv_transfer_s, 0.95) as transfer_p95_s,
    sum(kv_transfer_s) filter (ttft_s > 0) / sum(ttft_s) as of_ttft
from requests
where started_at >= $since::timestamptz and started_at < $until::timestamptz
    and ($model::varchar is null or model = $model) and kv_transfer_bytes > 0 and kv_transfer_s > 0
group by all
order by of_link nulls last, requests desc
limit 1000
