-- The days that ended by $closed, whose hours are all summed up, and that are not themselves; the oldest first.
select started_at
from cell_periods p
where tier = 'day' and state = 'open' and started_at <= $closed::timestamptz - interval 1 day
and not exists (
    select 1 from cell_periods h
    where h.tier = 'hour' and h.state = 'open' and h.started_at >= p.started_at and h.started_at < p.started_at + interval 1 day
)
and not exists (
    select 1 from dirty_blocks d where d.block_started_at >= p.started_at and d.block_started_at < p.started_at + interval 1 day
)
order by started_at
limit $limit_rows
