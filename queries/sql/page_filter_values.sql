-- The values of each key of judging segments, those of most segments first, at most so many of each.
with told as (
    select model, hardware, topology, input_bucket, temperature_bucket, tenant from cell_segments where segment_id <> 0
    union
    select
        segment ->> '$.model', segment ->> '$.hardware', segment ->> '$.topology', segment ->> '$.input_bucket',
        segment ->> '$.temperature_bucket', segment ->> '$.tenant'
    from current_verdicts
),
listed as (
    select unnest([
        {'key': 'model', 'value': model}, {'key': 'hardware', 'value': hardware}, {'key': 'topology', 'value': topology},
        {'key': 'input_bucket', 'value': input_bucket}, {'key': 'temperature_bucket', 'value': temperature_bucket},
        {'key': 'tenant', 'value': tenant}
    ], recursive := true)
    from told
)
select key, value, count(*) as segments
from listed
where value is not null
group by key, value
qualify row_number() over (partition by key order by count(*) desc, value) <= $values
order by key, segments desc, value
