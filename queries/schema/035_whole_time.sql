-- Treated's sums of whole times by replica, beside those of `replica_blocks` that there were: how far replicas lie apart is told of them too.
alter table replica_blocks add column e2e_s_num double default 0;
alter table replica_blocks add column e2e_s_den double default 0;
