-- Forgets what requests said when it was noted a quarter of an hour ago.
delete from replica_sums where noted_at < $now::timestamptz - interval 15 minutes
