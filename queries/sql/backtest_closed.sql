-- The blocks that closed in a period: a lever that is off has no effects in them, and is judged by its traffic all the same.
select distinct until from closed_blocks where until > $since and until <= $until order by until
