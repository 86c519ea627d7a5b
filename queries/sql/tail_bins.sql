-- The histograms of one metric in some series, of blocks from $since to $until, oldest first; a cell may have several parts.
select c.series_id, c.started_at as block_started_at, c.bins, c.counts
from block_histograms c
where
    c.started_at >= $since and c.started_at < $until
    and c.metric_id = (select metric_id from cell_metrics where metric = $metric)
    and c.series_id in (select unnest($series::integer[]))
order by c.started_at
