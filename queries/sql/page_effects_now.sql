-- One segment's newest effect of a lever on each metric; gains against a control arm, or a drawn schedule in its place.
select
    metric, since, until, value_a, value_b, if(basis = 'control' or (basis = 'switchback' and grade = 'good'), gain, null) as gain,
    gain_low, gain_high, n_a, n_b, blocks, coverage, note, basis
from effects
where lever = $lever and segment = $segment and until > $since::timestamptz and until <= $until::timestamptz
qualify row_number() over (partition by metric order by until desc) = 1
order by metric
