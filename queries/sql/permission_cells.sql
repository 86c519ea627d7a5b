-- The requests of both arms in some blocks ($starts) by replica, and treated's sums: one row per lever, pool, replica and block.
with places as materialized (
    select series_id, lever, arm = 'treated' as is_treated, replica, pool
    from cell_series join segment_pools using (segment_id)
    where lever <> '' and arm in ('treated', 'control') and not is_together
)
select
    lever, pool, replica, started_at as block_started_at,
    coalesce(sum(n) filter (metric = 'requests' and is_treated), 0)::bigint as treated_n,
    coalesce(sum(n) filter (metric = 'requests' and not is_treated), 0)::bigint as control_n,
    coalesce(sum(num) filter (metric = 'tpot_s' and is_treated), 0) as tpot_s_num,
    coalesce(sum(den) filter (metric = 'tpot_s' and is_treated), 0) as tpot_s_den,
    coalesce(sum(num) filter (metric = 'ttft_s' and is_treated), 0) as ttft_s_num,
    coalesce(sum(den) filter (metric = 'ttft_s' and is_treated), 0) as ttft_s_den,
    coalesce(sum(num) filter (metric = 'error_rate' and is_treated), 0) as error_rate_num,
    coalesce(sum(den) filter (metric = 'error_rate' and is_treated), 0) as error_rate_den,
    coalesce(sum(num) filter (metric = 'e2e_s' and is_treated), 0) as e2e_s_num,
    coalesce(sum(den) filter (metric = 'e2e_s' and is_treated), 0) as e2e_s_den
from block_cells
join places using (series_id)
join cell_metrics using (metric_id)
where started_at in (select unnest($starts)) and metric in ('requests', 'tpot_s', 'ttft_s', 'error_rate', 'e2e_s')
group by all
having treated_n > 0 or control_n > 0
