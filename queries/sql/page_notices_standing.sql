-- How many streams stand recommended off, how many of them are told to nobody because their policy is in shadow, and when the newest flip was.
select
    (select count(*) from current_verdicts where state = 'off_recommended') as stands,
    (select count(*) from current_verdicts c semi join policies p on p.policy = c.policy and p.lever = c.lever and contains(p.body, '"shadow":true')
        where c.state = 'off_recommended') as in_shadow,
    (select max(decided_at) from flips) as flipped_at,
    (select max(ended_at) from deliveries where outcome = 'delivered') as delivered_at
