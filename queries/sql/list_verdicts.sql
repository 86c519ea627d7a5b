-- What each stream's latest judging said, of policies that are in use, and whether its policy is in shadow, so that nobody is told; disabled
-- ones first. A filter that is null takes all.
select c.*, coalesce(p.shadow, false) as shadow from current_verdicts c join policies p using (policy, lever)
where ($lever::varchar is null or lever = $lever) and ($policy::varchar is null or policy = $policy)
    and ($verdict::varchar is null or verdict = $verdict) and ($state::varchar is null or state = $state)
    and ($since::timestamptz is null or decided_at >= $since) and ($until::timestamptz is null or decided_at < $until)
order by (verdict = 'disable') desc, decided_at desc, policy, segment limit $limit
