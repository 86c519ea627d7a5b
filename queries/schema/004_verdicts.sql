create table policies (
    policy varchar not null, version varchar not null, lever varchar not null, owner varchar not null,
    body varchar not null, loaded_at timestamptz not null
);

-- One row when verdict, action or reason code changes, at most one an hour otherwise.
create table verdicts (
    policy varchar not null, policy_version varchar not null, lever varchar not null, segment varchar not null,
    verdict varchar not null, action varchar not null, reason_code varchar not null, reason varchar not null,
    decided_at timestamptz not null, block_ended_at timestamptz not null
);

-- Each stream's latest numbers and its state: what the next judging starts from.
create table current_verdicts (
    policy varchar not null, policy_version varchar not null, lever varchar not null, segment varchar not null,
    verdict varchar not null, action varchar not null, reason_code varchar not null, reason varchar not null,
    decided_at timestamptz not null, block_ended_at timestamptz not null,
    state varchar not null, state_since timestamptz not null, streak bigint not null
);

-- A state change is written once, in the transaction that decides it. `notice` is the webhook's data as JSON.
create table flips (
    flip_id varchar not null, policy varchar not null, lever varchar not null, segment varchar not null,
    state_before varchar not null, state_after varchar not null, decided_at timestamptz not null, reason varchar not null,
    notice varchar not null
);

-- One row per attempt; the next attempt is the newest row's next_attempt_at.
create table deliveries (
    delivery_id varchar not null, flip_id varchar not null, webhook_id varchar not null, receiver varchar not null,
    attempt bigint not null, started_at timestamptz not null, ended_at timestamptz, status_code bigint,
    outcome varchar not null, error varchar, next_attempt_at timestamptz
);
