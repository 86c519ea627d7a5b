-- The hours that ended by $closed, whose blocks are all folded, and that are not summed up; the oldest first.
select started_at
from cell_periods p
where tier = 'hour' and state = 'open' and started_at <= $closed::timestamptz - interval 1 hour
and not exists (
    select 1 from dirty_blocks d where d.block_started_at >= p.started_at and d.block_started_at < p.started_at + interval 1 hour
)
order by started_at
limit $limit_rows
