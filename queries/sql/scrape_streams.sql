-- Per policy the streams with the most requests, up to $limit_segments of them: what its policy says now, and of its benefit's metric (a JSON
-- object from policy to metric) both arms' newest values and the gain, as in page_effects; null where nothing was compared in the period.
with newest as (
    select * from effects where until > $since and until <= $until
    qualify row_number() over (partition by lever, segment, metric order by until desc) = 1
)
select
    c.policy, c.lever, c.segment, c.verdict, c.action, c.state, e.metric, e.value_a, e.value_b, e.n_a, e.n_b,
    if(e.basis = 'control' or (e.basis = 'switchback' and e.grade = 'good'), e.gain, null) as gain, e.gain_low, e.gain_high, e.coverage
from current_verdicts c
semi join policies using (policy)
left join newest e
    on e.lever = c.lever and e.segment = c.segment and e.metric = json_extract_string($benefits::json, '/' || c.policy)
qualify row_number() over (partition by c.policy order by coalesce(e.n_a, 0) + coalesce(e.n_b, 0) desc, c.segment) <= $limit_segments
order by c.policy, c.segment
