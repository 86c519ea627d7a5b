-- What requests that all began from $since to $until said of their replicas, batch by batch.
select * exclude (noted_at) from replica_sums where since >= $since and until <= $until
