-- Whether anything was dropped of a relation between two moments.
select exists (
    select 1 from retention_log where relation = $relation and since <= $until::timestamptz and until >= $since::timestamptz
) as was_dropped
