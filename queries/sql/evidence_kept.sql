-- What was kept of each lever in each segment by one family of metrics, in the order in which it was kept.
select lever, segment, block_ended_at, numbers from detector_state
where layout = $layout and family = $family
order by lever, segment
