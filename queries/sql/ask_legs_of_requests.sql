-- title: Legs of disaggregated requests
-- answers: Where the time of a request goes that is read on one replica and answered on another, and how many have a leg that never came
--   or a clock that is off.
-- group: Disaggregation
-- param since moment 24h: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- param model text null: this model alone; every one where it is not given
-- column model text: the model
-- column prefill_replica text: who read the prompt; null where that leg is not here
-- column decode_replica text: who answered; null where that leg is not here
-- column requests count: with two replicas, or with a leg that is missing
-- column partial count: of these, with a leg missing
-- column clock_skew count: of these, whose legs' clocks disagree
-- column queue_s s: mean time in the queue
-- column prefill_s s: mean time to read the prompt
-- column transfer_s s: mean time to move its cache
-- column decode_s s: mean time to write the answer
-- column ttft_s s: mean time to the first token
select
    model, prefill_replica, decode_replica, count(*) as requests,
    count(*) filter (list_contains(flags, 'partial')) as partial,
    count(*) filter (list_contains(flags, 'clock_skew')) as clock_skew,
    avg(queue_s) as queue_s, avg(prefill_s) as prefill_s, avg(kv_transfer_s) as transfer_s, avg(decode_s) as decode_s, avg(ttft_s) as ttft_s
from requests
where started_at >= $since::timestamptz and started_at < $until::timestamptz
    and ($model::varchar is null or model = $model)
    and (prefill_replica is distinct from decode_replica or list_contains(flags, 'partial'))
group by model, prefill_replica, decode_replica
order by partial desc, requests desc
limit 1000
