-- Silences that last, are to come, or were over after a moment; the newest first.
select * from silences
where coalesce(least(ended_at, ends_at), ends_at) > $since::timestamptz
order by created_at desc, silence_id limit $silences::bigint
