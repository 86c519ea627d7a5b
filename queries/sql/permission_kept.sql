-- What is kept of the blocks from $since on and before $until, but for some of them ($starts).
select * from replica_blocks
where block_started_at >= $since and block_started_at < $until and block_started_at not in (select unnest($starts))
