-- One row per policy, lever and state that streams flipped to, over all flips that are kept: how many, and when the newest was decided.
select policy, lever, state_after, count(*) as flips, max(decided_at) as decided_at from flips group by all order by all
