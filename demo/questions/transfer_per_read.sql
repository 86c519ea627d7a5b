-- What shipping a prompt's state takes, relative to reading the prompt: of the treated arm's requests that were read elsewhere.
select sum(ttft_s - queue_s - prefill_s) / sum(prefill_s) as value
from requests
where $segment and started_at >= $since and started_at < $until and outcome = 'ok'
    and prefill_replica is not null and arms[$lever] = 'treated'
