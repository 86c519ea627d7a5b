-- The newest verdict of each stream of a lever (null: of all), with the gain in what its policy expects, of the newest block in the period,
-- and, while it stands recommended off, the flip that said so. Gains are against a control arm, or a drawn schedule in its place.
with told as (
    select
        policy,
        coalesce((body ->> '$.shadow')::boolean, false) as shadow,
        case body ->> '$.expected_benefit.metric' when 'net_itl_gain' then 'net_itl_s' else body ->> '$.expected_benefit.metric' end as benefit
    from policies
),
standing as (
    select
        c.policy, c.lever, c.segment, c.verdict, c.action, c.reason_code, c.reason, c.state, c.state_since, c.decided_at,
        coalesce(told.shadow, false) as shadow, coalesce(told.benefit, 'net_itl_s') as benefit
    from current_verdicts c left join told using (policy)
    where ($lever::varchar is null or c.lever = $lever) and ($segment::varchar is null or c.segment = $segment)
        and (told.policy is not null or not exists (from policies))
),
newest as (
    select
        e.lever, e.segment, e.metric, e.gain, e.gain_low, e.gain_high, e.n_a, e.n_b, e.blocks, e.coverage, e.since, e.until, e.basis, e.grade
    from effects e semi join standing s on e.lever = s.lever and e.segment = s.segment and e.metric = s.benefit
    where e.until > $since::timestamptz and e.until <= $until::timestamptz
    qualify row_number() over (partition by e.lever, e.segment, e.metric order by e.until desc) = 1
),
stopped as (
    select policy, segment, arg_max(flip_id, decided_at) as flip_id
    from flips
    where state_after = 'off_recommended'
    group by policy, segment
)
select
    s.*,
    s.segment ->> '$.model' as model, s.segment ->> '$.hardware' as hardware, s.segment ->> '$.topology' as topology,
    s.segment ->> '$.input_bucket' as input_bucket,
    if(n.basis = 'control' or (n.basis = 'switchback' and n.grade = 'good'), n.gain, null) as gain,
    n.gain_low, n.gain_high, n.n_a, n.n_b, n.blocks, n.coverage, n.since, n.until, f.flip_id
from standing s
left join newest n on n.lever = s.lever and n.segment = s.segment and n.metric = s.benefit
left join stopped f on f.policy = s.policy and f.segment = s.segment and s.state = 'off_recommended'
order by s.lever, s.segment, s.policy
