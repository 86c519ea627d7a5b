-- title: Errors by replica
-- answers: Whether errors come from one replica: errors and aborts by replica, against the rate of its model.
-- group: Traffic
-- param since moment 24h: from when on; a time, or an age before now
-- param until moment now: up to when, exclusive
-- param model text null: this model alone; every one where it is not given
-- column model text: the model
-- column replica text: the replica; null where none is known
-- column engine_version text: what it runs
-- column requests count: all
-- column errors count: that ended in an error
-- column aborted count: whose caller went away
-- column error_rate ratio: errors over all that were not aborted
-- column of_model ratio: that rate over the model's
-- column newest_error_at moment: when the newest of them began
with counted as (
    select
        model, replica, engine_version, count(*) as requests, count(*) filter (outcome = 'error') as errors,
        count(*) filter (outcome = 'aborted') as aborted, max(started_at) filter (outcome = 'error') as newest_error_at
    from requests
    where started_at >= $since::timestamptz and started_at < $until::timestamptz
        and ($model::varchar is null or model = $model)
    group by all
)
select
    model, replica, engine_version, requests, errors, aborted, errors / nullif(requests - aborted, 0) as error_rate,
    error_rate / nullif(sum(errors) over of_it / nullif(sum(requests - aborted) over of_it, 0), 0) as of_model, newest_error_at
from counted
window of_it as (partition by model)
order by of_model desc nulls last, requests desc
limit 1000
