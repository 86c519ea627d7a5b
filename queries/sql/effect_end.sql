-- The end of a lever's newest block that was compared; where none was, of the newest that has cells.
select coalesce(
    (select max(until) from effects where lever = $lever),
    (select max(block_started_at) + to_seconds($block_s) from cells where lever = $lever)
) as until
