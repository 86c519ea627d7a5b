-- The newest effect of a lever on a metric in each segment, not older than the period's start; gains as in page_effects.
select segment, if(basis = 'control' or (basis = 'switchback' and grade = 'good'), gain, null) as gain, gain_low, gain_high, blocks, until
from effects
where lever = $lever and metric = $metric and until > $since and until <= $until
qualify row_number() over (partition by segment order by until desc) = 1
