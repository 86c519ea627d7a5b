-- What became of what a sender sent, one row a loaded batch and minute of arrival; read through the view ingest_ledger.
create table ingest_entries (
    sender varchar not null, signal varchar not null, minute timestamptz not null,
    received bigint not null, stored bigint not null, duplicate bigint not null, rejected bigint not null,
    dropped bigint not null, pending bigint not null, late bigint not null, reasons map(varchar, bigint)
);

-- How far the spool was loaded: stored in the transaction that stores its rows.
create table spool_position (segment bigint not null, byte_offset bigint not null);

-- What the jobs have still to do. Filled by the job before, emptied in the transaction that does it.
create table dirty_traces (trace_id varchar not null, since timestamptz not null, until timestamptz not null);
create table dirty_blocks (block_started_at timestamptz not null);

-- The newest span end seen from each sender.
create table watermarks (sender varchar primary key, ended_at timestamptz not null, seen_at timestamptz not null);

create table metrics (
    name varchar not null, kind varchar not null, numerator varchar, denominator varchar, known_when varchar,
    unit varchar not null, better varchar not null, formula varchar not null, source varchar not null, traps varchar[]
);

-- The ends of the blocks whose arms were compared; `judged` once policies have seen them.
create table closed_blocks (until timestamptz primary key, judged boolean not null default false);

-- The sealed files of each relation (sealing.py); a file that stands in no row here is not part of the store.
create table parts (
    relation varchar not null, "file" varchar not null, since timestamptz not null, until timestamptz not null,
    "rows" bigint not null, bytes bigint not null
);
