-- The hot rows that the assembled ones replace.
delete from requests_hot
where exists (
    select 1 from working_traces w
    where w.trace_id = requests_hot.trace_id and requests_hot.started_at between w.replaced_since and w.replaced_until
)
