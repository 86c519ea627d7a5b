-- The newest effect of a lever on a metric in each segment, not older than the period's start.
select segment, gain, gain_low, gain_high, blocks, until
from effects
where lever = $lever and metric = $metric and until > $since and until <= $until
qualify row_number() over (partition by segment order by until desc) = 1
