-- What of a period's requests was set aside, or is suspect and stayed, by column and trap; a bound that is null is open.
select 'quarantined' as severity, "column", trap, any_value(upstream) as upstream, count(*)::bigint as n
from quarantine
where ($since::timestamptz is null or started_at >= $since::timestamptz) and ($until::timestamptz is null or started_at < $until::timestamptz)
and "column" <> '*'
group by "column", trap
union all
select severity, "column", trap, any_value(upstream), sum(n)::bigint
from suspicions
where ($since::timestamptz is null or until >= $since::timestamptz) and ($until::timestamptz is null or since < $until::timestamptz)
and severity = 'suspect'
group by severity, "column", trap
order by n desc, "column", trap
