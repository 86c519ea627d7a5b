-- Since when the requests of a batch began: sums of a whole history say nothing of the minutes that its last samples are of.
alter table replica_sums add column since timestamptz;
