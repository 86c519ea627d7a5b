-- The segments of a lever that have cells in the blocks from $since to $until.
select distinct segment
from cells
where lever = $lever and block_started_at >= $since and block_started_at < $until and json_valid(segment)
order by segment
