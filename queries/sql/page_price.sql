-- What an hour of one GPU of a kind of hardware costs at a time, in USD; no row where nobody said.
select usd_per_gpu_hour from prices
where hardware = $hardware and (from_time is null or from_time <= $until::timestamptz)
order by from_time desc nulls last limit 1
