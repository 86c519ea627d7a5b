-- How many requests each version of an engine served of a model on a hardware, block by block, of blocks from $since to $until.
select time_bucket(to_seconds($block_s), started_at) as block_started_at, model, hardware, engine, engine_version, count(*)::bigint as n
from requests
where started_at >= $since and started_at < $until and engine is not null and engine_version is not null
group by all
order by all
