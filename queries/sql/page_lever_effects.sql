-- The newest effect of a lever on a metric in each segment that has one in the period, the worst first. Gains are ratios, above 0 where the lever
-- helps; against a control arm, or what `basis` names in its place.
select
    segment, metric, value_a, value_b, gain, gain_low, gain_high, n_a, n_b, blocks, coverage, basis, note, until
from effects
where lever = $lever and metric = $metric and arm_a = 'treated' and until > $since::timestamptz and until <= $until::timestamptz
qualify row_number() over (partition by segment order by until desc) = 1
order by gain nulls last, segment
