-- What judging remembers of a stream: what switched it off, what was advised then, when that was last confirmed, and how many blocks in a
-- row each gate and each advice has held, as JSON (null for none).
alter table current_verdicts add column cause varchar;
alter table current_verdicts add column advised varchar;
alter table current_verdicts add column confirmed_at timestamptz;
alter table current_verdicts add column counts varchar;
