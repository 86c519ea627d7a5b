-- The hot rows that the assembled ones replace.
delete from requests_hot
using working_traces as w
where w.trace_id = requests_hot.trace_id and requests_hot.started_at between w.replaced_since and w.replaced_until
