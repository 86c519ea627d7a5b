-- What is kept of each lever in each segment between blocks: numbers in an order that `layout` names (pipeline/evidence.py).
create table detector_state (
    lever varchar not null, segment varchar not null, block_ended_at timestamptz not null, layout integer not null, numbers double[] not null
);

-- Evidence that the gain is below each null, and above it, as logarithms of M (nulls 0, 0.02, 0.05 and 0.1); `evidence` is M over the blocks
-- of a day, of a gain below 0. `tests` is how many segments of the lever are told apart, `blocks_seen` how many contrasts there were.
alter table effects add column evidence_below double[];
alter table effects add column evidence_above double[];
alter table effects add column tests bigint;
alter table effects add column blocks_seen bigint;
-- Contrasts since the lever may have become worse than control, and the gain over them.
alter table effects add column turned_blocks bigint;
alter table effects add column turned_gain double;
