-- How many streams of each policy that is in use stand where: all of them, shown or not.
select c.policy, c.lever, c.verdict, c.state, count(*) as streams
from current_verdicts c
semi join policies using (policy)
group by all
order by all
