-- The policies of a lever as their files have them.
select policy, version, lever, owner, body, loaded_at
from policies
where lever = $lever
order by policy
