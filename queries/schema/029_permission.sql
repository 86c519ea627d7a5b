-- Where each lever's control was: the requests of both arms by replica and block, of the last day; a pool is a judging segment without the keys
-- that requests of one replica differ in. `stay_blocks` is for how many blocks the replica had been in control by then (`side` 1; -1 treated).
-- The sums are treated's: what a replica is slower by than the others is told from them (pipeline/permission.py).
create table replica_blocks (
    lever varchar not null, pool varchar not null, replica varchar, block_started_at timestamptz not null,
    treated_n bigint not null, control_n bigint not null, stay_blocks double not null, side double not null,
    tpot_s_num double not null, tpot_s_den double not null, ttft_s_num double not null, ttft_s_den double not null,
    error_rate_num double not null, error_rate_den double not null
);

create view segment_pools as
select segment_id, segment,
    case when json_valid(segment)
        then json_merge_patch(segment, '{"input_bucket":null,"temperature_bucket":null,"tenant":null}')::varchar else segment end as pool
from cell_segments;

-- What is kept of the split of arms between blocks, where a configuration says what it should be: numbers in an order that `layout` names
-- (pipeline/arm_split.py).
create table arm_split_state (
    lever varchar not null, segment varchar not null, block_ended_at timestamptz not null, layout integer not null, numbers double[] not null
);

-- Whether a contrast may decide (`same_replicas`, `rotating`, `offsets_subtracted`, `widened_null`, `unseen`, `refused`; null without a control
-- arm), by what ratio its null is widened (null where it may not decide), and why. `sample_ratio_off` says whether the arms are split
-- otherwise than intended, null where nobody said how; the shares (0 to 1) are control's, of the last hours and as intended.
alter table effects add column permission varchar;
alter table effects add column margin double;
alter table effects add column permission_reason varchar;
alter table effects add column sample_ratio_off boolean;
alter table effects add column control_share double;
alter table effects add column intended_control_share double;
