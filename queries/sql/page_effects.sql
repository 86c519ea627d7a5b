-- One segment's effects of a lever on a metric over time; gains against a control arm, or a drawn schedule in its place.
select until, value_a, value_b, if(basis = 'control' or (basis = 'switchback' and grade = 'good'), gain, null) as gain, gain_low, gain_high, n_a, n_b, blocks, coverage, note
from effects
where lever = $lever and segment = $segment and metric = $metric and until > $since and until <= $until
order by until
