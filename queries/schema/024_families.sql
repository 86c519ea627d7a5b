-- Which metrics the numbers are of (pipeline/evidence_families.py).
alter table detector_state add column family varchar default 'means';
