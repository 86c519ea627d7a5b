-- When the newest data ends that came from any sender.
select max(ended_at) as newest_at from watermarks
