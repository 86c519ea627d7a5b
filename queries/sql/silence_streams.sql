-- The streams that were ever judged, and those that flips were told of: what a silence may be about.
select policy, lever, segment from current_verdicts where json_valid(segment)
union
select policy, lever, segment from flips where json_valid(segment)
order by all
