-- Where a lever stops paying in a segment, along each key: the newest of each epoch, newest epoch first.
select *
from break_even
where lever = $lever and segment = $segment
order by "key", since desc
