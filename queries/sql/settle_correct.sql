-- Notes closed blocks whose cells changed (`incoming`), and by how many requests.
insert into corrections
select block_started_at, corrected_at, added, removed
from incoming
where block_started_at + to_seconds($block_s) in (select until from closed_blocks)
