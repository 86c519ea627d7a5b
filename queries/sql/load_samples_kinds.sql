-- What became of each body's samples; late are those observed long before they came.
select
    arrival,
    count(*) as received,
    count(*) filter (where is_new) as stored,
    count(*) filter (where is_new and epoch_ns(received_at) - epoch_ns(observed_at) > $late_ns) as late
from staged_samples
group by arrival
