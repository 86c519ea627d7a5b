-- The weeks that ended by $closed, whose days and hours are all summed up, and that are not themselves; the oldest first.
select started_at
from cell_periods p
where tier = 'week' and state = 'open' and started_at <= $closed::timestamptz - interval 7 day
and not exists (
    select 1 from cell_periods f
    where f.tier in ('hour', 'day') and f.state = 'open' and f.started_at >= p.started_at and f.started_at < p.started_at + interval 7 day
)
and not exists (
    select 1 from dirty_blocks d where d.block_started_at >= p.started_at and d.block_started_at < p.started_at + interval 7 day
)
order by started_at
limit $limit_rows
