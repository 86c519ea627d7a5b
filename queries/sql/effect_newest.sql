-- The newest effects of a lever, per segment and metric.
select * from effects where lever = $lever qualify until = max(until) over (partition by segment) order by segment, metric
