-- Up to when the cells of single blocks, and of single hours, were dropped.
select relation, max(until) as until from retention_log where relation in ('block_cells', 'hour_cells') group by relation
