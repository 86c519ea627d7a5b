-- What was kept of these segments of a lever along a key, in the order in which it was kept.
select lever, segment, since, until, numbers
from break_even_kept
where
    lever = $lever and "key" = $key and layout = $layout and buckets = $buckets::varchar[]
    and segment in (select unnest($segments::varchar[]))
order by segment
