-- The assembled rows that replace; provenance comes as pairs.
insert into requests_hot by name
select columns(* exclude (provenance)), map_from_entries(provenance) as provenance, false as is_settled
from incoming
where exists (
    select 1 from working_traces w
    where w.trace_id = incoming.trace_id and incoming.started_at between w.replaced_since and w.replaced_until
)
