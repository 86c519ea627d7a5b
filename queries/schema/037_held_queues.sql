-- Until when a receiver asked for nothing more (Retry-After of a 429 or 503), on the attempt that it answered so: its whole queue waits.
alter table deliveries add column held_until timestamptz;
