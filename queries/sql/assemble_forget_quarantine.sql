-- What was set aside from the requests that are replaced.
delete from quarantine
where exists (
    select 1 from working_traces w
    where w.trace_id = quarantine.trace_id and quarantine.started_at between w.replaced_since and w.replaced_until
)
