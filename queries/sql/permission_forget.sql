-- Takes off what is older than a cycle ($since), and the blocks that are written anew ($starts).
delete from replica_blocks where block_started_at < $since or block_started_at in (select unnest($starts))
