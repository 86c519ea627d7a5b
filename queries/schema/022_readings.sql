-- Which signals a span says by leaving an attribute out, joined by commas. Older parts lack it, and read as null.
alter table spans_hot add column signals.inferred varchar;
create or replace view stored_spans as select * from spans_hot;
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

-- Requests that a replica answered and another read the prompt of; `own_*` are of the prompts that a replica read, for whomever.
alter table replica_sums add column taken_n bigint;
