-- Whether a policy in use only tries itself out, so that nobody is told of what it says.
alter table policies add column shadow boolean;
update policies set shadow = contains(body, '"shadow":true'); -- as `alerts/canonical.py` writes it

-- Policies that are not in use any more, and up to which block they had judged: one that comes back begins there.
create table removed_policies (policy varchar not null, lever varchar not null, removed_at timestamptz not null);

-- The receivers of the newest start, and the empty name once a server has started: one that is not among them is new, and hears what stands.
create table known_receivers (receiver varchar not null, known_since timestamptz not null);
insert into known_receivers
select distinct receiver, now() from deliveries
union all select '', now() where exists (select 1 from deliveries) or exists (select 1 from current_verdicts);
