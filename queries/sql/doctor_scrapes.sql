-- Each scrape target's newest minute with samples, its newest with a failure, and that failure.
select
    sender, max(minute) filter (where stored + duplicate > 0) as last_scraped_at,
    max(minute) filter (where rejected > 0) as last_failed_at,
    arg_max(map_keys(reasons)[1], minute) filter (where rejected > 0) as reason
from ingest_entries
where starts_with(sender, 'scrape:')
group by sender
order by sender
