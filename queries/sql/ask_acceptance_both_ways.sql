-- title: Acceptance, by token and by request
-- answers: How many drafts hold, counted both ways: a token-weighted share favors long answers, a request-weighted one takes each request
--   alike. They differ where long answers are easier to guess.
-- group: Speculation
-- param since moment 24h: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- param model text null: this model alone; every one where it is not given
-- column model text: the model
-- column temperature_bucket text: sampling temperature; null where it is not said
-- column requests count: with drafts whose fate is known
-- column draft_tokens tokens: drafted
-- column accepted_by_token ratio: accepted tokens over drafted ones
-- column accepted_by_request ratio: mean over requests of the same
-- column accepted_p10 ratio: the request at a tenth from below
-- column accepted_p90 ratio: the request at a tenth from above
-- column acceptance_length tokens/step: tokens that a verify step gives, its own included; null where steps are not said
select
    model, temperature_bucket, count(*) as requests, sum(draft_tokens)::bigint as draft_tokens,
    sum(accepted_tokens) / sum(draft_tokens) as accepted_by_token,
    avg(accepted_tokens / draft_tokens) as accepted_by_request,
    quantile_cont(accepted_tokens / draft_tokens, 0.1) as accepted_p10,
    quantile_cont(accepted_tokens / draft_tokens, 0.9) as accepted_p90,
    1 + sum(accepted_tokens) filter (verify_steps > 0) / sum(verify_steps) filter (verify_steps > 0) as acceptance_length
from requests
where started_at >= $since::timestamptz and started_at < $until::timestamptz
    and ($model::varchar is null or model = $model) and draft_tokens > 0 and accepted_tokens is not null
group by model, temperature_bucket
order by model, temperature_bucket
