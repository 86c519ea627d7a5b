-- What is to be judged again, and what was; the newest first.
select *
from revalidations
where ($all or done_at is null) and ($lever is null or lever = $lever or other_lever = $lever)
order by changed_at desc, lever, scope, other_lever, policy
limit $limit_rows
