-- The rows that were made of imported requests; provenance comes as pairs.
insert into requests_hot by name
select columns(* exclude (provenance)), map_from_entries(provenance) as provenance, false as is_settled from incoming
