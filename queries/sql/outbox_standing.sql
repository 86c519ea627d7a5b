-- The streams of policies in use that are not simply in use, with their state: what is recommended there stands.
select c.policy, c.lever, c.segment, c.state
from current_verdicts c semi join policies using (policy, lever)
where c.state in ('off_recommended', 'probation')
