-- Every version of one question that is kept, the newest first.
select version, title, sql, params, created_by, created_at, is_deleted
from saved_questions
where name = $name
order by version desc
