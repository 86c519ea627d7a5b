-- Keeps what the requests of one batch (`incoming`) said of their replicas.
insert into replica_sums by name select *, $now::timestamptz as noted_at from incoming
