-- What was kept of each lever in each segment, in the order in which it was kept.
select lever, segment, block_ended_at, numbers from detector_state where layout = $layout order by lever, segment
