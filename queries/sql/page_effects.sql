-- One segment's effects of a lever on one metric over time, the newest of each bucket; gains against a control arm, or a drawn schedule in
-- its place. `turned_at`: since when the lever may be worse, as its evidence has it at that time.
select
    until, value_a, value_b, if(basis = 'control' or (basis = 'switchback' and grade = 'good'), gain, null) as gain,
    gain_low, gain_high, n_a, n_b, blocks, coverage, note, metric,
    if(turned_blocks > 0 and turned_gain < 0, until - to_seconds(300 * turned_blocks * coalesce(blocks_together, 1)), null) as turned_at
from effects
where lever = $lever and segment = $segment and list_contains($metrics::varchar[], metric)
    and until > $since::timestamptz and until <= $until::timestamptz
qualify row_number() over (partition by metric, time_bucket(to_seconds($step_s::bigint), until) order by until desc) = 1
order by until
