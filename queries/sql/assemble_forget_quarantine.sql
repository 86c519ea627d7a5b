-- What was set aside from the requests that are replaced.
delete from quarantine
using working_traces as w
where w.trace_id = quarantine.trace_id and quarantine.started_at between w.replaced_since and w.replaced_until
