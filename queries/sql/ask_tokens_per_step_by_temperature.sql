-- title: Tokens per step by temperature
-- answers: Whether drafts hold less where sampling is freer: tokens that a verify step gives, and the acceptance of the first and second
--   draft, by temperature.
-- group: Speculation
-- param since moment 24h: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- param model text null: this model alone; every one where it is not given
-- column model text: the model
-- column temperature ratio: rounded to a tenth; null where it is not said
-- column requests count: with verify steps
-- column tokens_per_step tokens/step: the step's own token included
-- column accepted_first ratio: steps whose first draft held
-- column accepted_second ratio: steps whose second draft held, of those whose first did
-- column tpot_s s: per output token after the first
select
    model, round(temperature, 1) as temperature, count(*) as requests,
    1 + sum(accepted_tokens) / sum(verify_steps) as tokens_per_step,
    sum(accepted_by_position[1]) / sum(verify_steps) filter (accepted_by_position is not null) as accepted_first,
    sum(accepted_by_position[2]) / nullif(sum(accepted_by_position[1]) filter (len(accepted_by_position) >= 2), 0) as accepted_second,
    sum(decode_s) filter (output_tokens >= 2) / sum(output_tokens - 1) filter (decode_s is not null and output_tokens >= 2) as tpot_s
from requests
where started_at >= $since::timestamptz and started_at < $until::timestamptz
    and ($model::varchar is null or model = $model) and verify_steps > 0 and accepted_tokens is not null
group by 1, 2
order by 1, 2
