-- The assembled rows; provenance comes as pairs.
insert into requests_hot by name
select columns(* exclude (provenance)), map_from_entries(provenance) as provenance
from (select * from incoming)
