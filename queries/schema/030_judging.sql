-- What a flip advises, how much it matters, and whether its policy only tries itself out, so that nobody is told.
alter table flips add column action varchar;
alter table flips add column severity varchar;
alter table flips add column shadow boolean;
