-- The newest span end seen from each sender; a clock that runs ahead is held to the time of arrival.
insert into watermarks
select sender, max(least(ended_at, received_at + to_seconds($ahead_s))) as ended_at, max(received_at) as seen_at
from incoming
group by sender
on conflict (sender) do update set
    ended_at = greatest(watermarks.ended_at, excluded.ended_at),
    seen_at = greatest(watermarks.seen_at, excluded.seen_at)
