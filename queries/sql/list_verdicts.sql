-- What each stream's latest judging said, of policies that are in use; disabled ones first. A filter that is null takes all.
select c.* from current_verdicts c semi join policies using (policy)
where ($lever::varchar is null or lever = $lever) and ($policy::varchar is null or policy = $policy)
    and ($verdict::varchar is null or verdict = $verdict) and ($state::varchar is null or state = $state)
    and ($since::timestamptz is null or decided_at >= $since) and ($until::timestamptz is null or decided_at < $until)
order by (verdict = 'disable') desc, decided_at desc, policy, segment limit $limit
