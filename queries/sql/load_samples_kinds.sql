-- What became of each body's samples; late are those observed long before they came, but for those of recorded files.
select
    arrival,
    count(*) as received,
    count(*) filter (where is_new) as stored,
    count(*) filter (where is_new and not starts_with(sender, 'load:') and epoch_ns(received_at) - epoch_ns(observed_at) > $late_ns) as late
from staged_samples
group by arrival
