-- title: The slowest requests
-- answers: What took longest, with where its time went: to be opened one by one.
-- group: Traffic
-- param since moment 24h: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- param model text null: this model alone; every one where it is not given
-- param rows integer 50: how many
-- column request_id text: the request
-- column trace_id text: its trace
-- column started_at moment: when it began
-- column model text: the model
-- column tenant text: the tenant
-- column replica text: who answered
-- column outcome text: ok, error, aborted or unknown
-- column prompt_tokens tokens: asked
-- column output_tokens tokens: answered
-- column queue_s s: in the queue
-- column prefill_s s: to read the prompt
-- column ttft_s s: to the first token
-- column decode_s s: to write the answer
-- column e2e_s s: from start to end
-- column flags list: what is odd of it
select
    request_id, trace_id, started_at, model, tenant, replica, outcome, prompt_tokens, output_tokens, queue_s, prefill_s, ttft_s, decode_s,
    e2e_s, flags
from requests
where started_at >= $since::timestamptz and started_at < $until::timestamptz
    and ($model::varchar is null or model = $model) and e2e_s is not null
order by e2e_s desc
limit $rows::bigint
