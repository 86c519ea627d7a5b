-- How far judging is: the end of the newest block whose arms were compared, and whether older blocks wait to be measured.
select
    (select max(until) from closed_blocks) as judged_until,
    exists (from dirty_traces where until < $recent) or exists (from dirty_blocks where block_started_at < $recent) as is_behind
