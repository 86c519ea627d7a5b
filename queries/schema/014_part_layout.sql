-- What makes parts small (parts.py, part_writer.py): the attributes of type double as numbers, and a mark in place of a join key that is
-- the request id. `stored_spans` is hot rows and parts as they are stored; `spans` is what analysts see. Older rows have null in both.
alter table spans_hot add column numbers map(varchar, double);
alter table spans_hot add column joins_by_request_id boolean;
create view stored_spans as select * from spans_hot;
create or replace view spans as
select * exclude (numbers, joins_by_request_id) replace (
    case when joins_by_request_id then struct_update(signals, join_key := signals.request_id) else signals end as signals,
    case
        when coalesce(cardinality(numbers), 0) = 0 then attributes
        else map(
            list_concat(map_keys(attributes), map_keys(numbers)),
            list_concat(map_values(attributes), map_values(numbers)::varchar[])
        )
    end as attributes
)
from stored_spans;
