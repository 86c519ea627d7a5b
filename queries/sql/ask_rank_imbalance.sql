-- title: Imbalance between ranks
-- answers: Whether one GPU of a replica makes the others wait, as hot experts do: time in collectives by rank, the longest over the mean
--   of all ranks. A rank that waits for others has the longer times; the shortest is the busy one.
-- group: Load
-- param since moment 6h: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- column replica text: the replica
-- column collective text: the operation, as NCCL names it
-- column ranks count: that told
-- column operations count: that were seen
-- column mean_s s: mean time of an operation, over ranks
-- column longest_of_mean ratio: mean time of the slowest rank over the mean of all
-- column busiest_rank text: the rank with the shortest times: the others wait for it
-- column bus_bytes_per_s bytes/s: mean bus bandwidth; null where it is not told
with by_rank as (
    select
        replica, coalesce(labels['collective'], name) as collective, labels['rank'] as rank,
        count(*) filter (signal = 'collective_s') as operations, avg(value) filter (signal = 'collective_s') as mean_s,
        avg(value) filter (signal = 'collective_bus_bytes_per_s') as bus_bytes_per_s
    from samples
    where observed_at >= $since::timestamptz and observed_at < $until::timestamptz
        and signal in ('collective_s', 'collective_bus_bytes_per_s') and labels['rank'] is not null
    group by 1, 2, 3
)
select
    replica, collective, count(*) as ranks, sum(operations)::bigint as operations, avg(mean_s) as mean_s,
    max(mean_s) / nullif(avg(mean_s), 0) as longest_of_mean, arg_min(rank, mean_s) as busiest_rank, avg(bus_bytes_per_s) as bus_bytes_per_s
from by_rank
where mean_s is not null
group by replica, collective
order by longest_of_mean desc
limit 1000
