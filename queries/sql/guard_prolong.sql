-- Suspicions that go on: the row that ended within ten minutes of what was seen anew (`incoming`) grows to its end.
update suspicions set
    until = greatest(suspicions.until, incoming.until),
    n = suspicions.n + incoming.n,
    seen = incoming.seen
from incoming
where suspicions.replica = incoming.replica and suspicions.trap = incoming.trap and suspicions."column" = incoming."column"
and incoming.since <= suspicions.until + interval 10 minutes and incoming.until >= suspicions.since
