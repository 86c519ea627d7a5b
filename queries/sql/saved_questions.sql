-- The version that counts of each question that people saved, by name; one that was taken away is not there.
select name, version, title, sql, params, created_by, created_at
from saved_questions
where $name::varchar is null or name = $name
qualify row_number() over (partition by name order by version desc) = 1 and not is_deleted
order by name
