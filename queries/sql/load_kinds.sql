-- What became of each body's spans; late are those that ended long before what their sender had already said.
select
    arrival,
    count(*) as received,
    count(*) filter (where is_new) as stored,
    count(*) filter (where differs) as differing,
    count(*) filter (where is_new and staged.ended_at < watermarks.ended_at - to_seconds($late_s)) as late
from staged
left join watermarks using (sender)
group by arrival
