-- What waits for a receiver, next first: its newest row of each webhook id where that is still to be tried. Of `deliveries` alone, so that it is asked anew only after a change of them.
with newest as (
    select flip_id, webhook_id, attempt, outcome, started_at, next_attempt_at,
        attempt - max(attempt) filter (where outcome = 'pending') over (partition by webhook_id) as tries,
        count(*) filter (where outcome = 'pending') over (partition by webhook_id) as asked
    from deliveries where receiver = $receiver
    qualify row_number() over (partition by webhook_id order by attempt desc, (outcome = 'pending') desc) = 1
)
select * from newest where outcome in ('pending', 'retrying')
