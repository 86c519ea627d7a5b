"""A small fleet for the investigations: every table that they read, with rows whose answers can be told by hand.

Ten hours before NOW, 40 requests an hour of `chat`: two replicas, every second one treated with drafts; and 10 an hour of `docs`, read
on one replica and answered on another.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from queries.store import Store

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
HOURS = 10

_CHAT = """
insert into requests_hot by name
select
    'c' || n as request_id, 't' || n as trace_id, 'vllm' as engine, '0.9' as engine_version, 'chat' as model,
    case when n % 4 < 2 then 'acme' else 'globex' end as tenant, 'chat-' || n % 2 as replica,
    $since + to_seconds(90 * n) as started_at, started_at + interval 5 seconds as ended_at,
    case when n % 20 = 19 then 'error' when n % 20 = 9 then 'aborted' else 'ok' end as outcome,
    1000 as prompt_tokens, case when n % 4 = 0 then 0 when n % 4 = 1 then 512 else 16 end as cached_tokens, 101 as output_tokens,
    0.1 as queue_s, 0.2 as prefill_s, case when is_treated then 2.0 else 2.5 end as decode_s,
    case when is_treated then 0.9 else 0.4 end as ttft_s,
    5.0 as e2e_s, decode_s / 100 as tpot_s,
    case when is_treated then (case when n % 8 = 1 then 100 else 300 end) end as draft_tokens,
    case when is_treated then (case when n % 8 = 1 then 80 else 60 end) end as accepted_tokens,
    case when is_treated then 50 end as verify_steps, case when is_treated then [40, 20] end as accepted_by_position,
    n % 6 as batch_at_admission, case when n % 6 < 3 then '<2' else '2-3' end as batch_bucket, 3 as queue_depth, 0.5 as kv_usage,
    (n % 10 = 0)::int as preemptions, case when n % 40 = 0 then 256 else 0 end as evicted_tokens, 16 as kv_block_tokens,
    'h100' as hardware, 'tp1' as topology, 0.7 as temperature, '0.3-0.8' as temperature_bucket, '512-2047' as input_bucket,
    '64-255' as output_bucket, map {'speculation': case when is_treated then 'eagle' else 'off' end} as levers,
    map {'speculation': case when is_treated then 'treated' else 'control' end} as arms, map {'ttft_s': 'span'} as provenance,
    [] as flags, 10.0 as gpu_s, true as is_settled
from (select range as n, range % 2 = 1 as is_treated from range(400))
"""
_DOCS = """
insert into requests_hot by name
select
    'd' || n as request_id, 'u' || n as trace_id, 'vllm' as engine, 'docs' as model, 'docs-1' as replica, 'docs-0' as prefill_replica,
    'docs-1' as decode_replica, $since + to_seconds(360 * n) as started_at, started_at + interval 9 seconds as ended_at, 'ok' as outcome,
    8000 as prompt_tokens, 100 as output_tokens, 0.5 as queue_s, 1.0 as prefill_s, 6.0 as decode_s, 2.0 as ttft_s, 9.0 as e2e_s,
    1000000000 as kv_transfer_bytes, case when n = 0 then 0.01 else 0.5 end as kv_transfer_s, 4e9 as link_peak_bytes_per_s,
    map {} as levers, map {} as arms, map {} as provenance, case when n % 10 = 0 then ['partial'] else [] end as flags, true as is_settled
from (select range as n from range(100))
"""
_SPANS = """
insert into spans_hot by name
select
    't' || n as trace_id, 's' || n as span_id, 'score_tokens' as name, 'internal' as kind, $since + to_seconds(90 * n) as started_at,
    started_at as ended_at, 0 as start_unix_nano, 0.0 as duration_s, 'ok' as status, 'router' as sender, 'llm-d' as dialect,
    map {} as resource, map {'llm_d.kv_cache.block_hit_ratio': '0.512'} as attributes, [] as events, [] as links, started_at as received_at
from (select range as n from range(400))
"""
_OTHERS = (
    "insert into ingest_entries select 'router', 'traces', date_trunc('minute', $since), 410, 402, 8, 0, 0, 0, 0, map {}",
    "insert into watermarks values ('router', $since + interval 10 hours, $since + interval 10 hours)",
    "insert into prices values ('h100', 3.6, null)",
    "insert into quarantine by name select 'c1' as request_id, 't1' as trace_id, $since as started_at, 'accepted_tokens' as \"column\", "
    "'9' as value, 'more than drafted' as reason, 'accepted_above_drafted' as trap",
    "insert into samples_hot by name select $since + interval 8 hours as observed_at, 'moe-0' as replica, 'nccl_exec_time' as name, "
    "map {'rank': n::varchar, 'collective': 'AllReduce'} as labels, case when n = 3 then 0.001 else 0.003 end as value, 'gauge' as kind, "
    "'collective_s' as signal, 'x' as sender, $since as received_at from range(4) t(n)",
    "insert into evaluations by name select $since as evaluated_at, 'forms' as suite, 'product' as kind, 'chat' as model, "
    "case when n >= 6 then 'speculation' end as lever, case when n < 6 then 'original' else 'eagle' end as setting, 'r' || n as run_id, "
    "case when n < 6 then 80.0 + n % 2 else 70.0 end as score, 'higher' as better, n::varchar as evaluation_id, 'x' as sender, "
    "$since as received_at from range(9) t(n)",
    "insert into flips by name select 'f' || n as flip_id, 'spec' as policy, 'speculation' as lever, '{}' as segment, "
    "case when n = 1 then 'off_recommended' else 'on' end as state_before, case when n = 1 then 'on' else 'off_recommended' end as "
    "state_after, $since + to_hours(2 * n) as decided_at, 'gain -5 %' as reason, '{}' as notice, 'disable' as action from range(3) t(n)",
    "insert into current_verdicts by name select 'spec' as policy, '1' as policy_version, 'speculation' as lever, '{}' as segment, "
    "'insufficient' as verdict, 'hold' as action, 'no_control' as reason_code, 'no requests' as reason, $since as decided_at, "
    "$since as block_ended_at, 'on' as state, $since as state_since, 1 as streak",
    "insert into metrics by name select 'draft_acceptance' as name, 'ratio' as kind, 'ratio' as unit, 'higher' as better, 'f' as formula, "
    "'s' as source, 'a tap brings it' as missing",
    "insert into cell_segments by name select 1 as segment_id, '{}' as segment",
    "insert into cell_series values (1, 1, 'speculation', 'treated', 'chat-1', null, false), "
    "(2, 1, 'speculation', 'treated', null, null, true)",
    "insert into cell_metrics values (1, 'requests')",
    "insert into block_cells select s, $since + to_seconds(300 * n), 1, 5, 5, 0, 0, 0, 0, 0, 0 "
    "from range(120) t(n), (values (1), (2)) v(s)",
)


def fill(store: Store) -> None:
    """Writes the rows of the ten hours before NOW."""
    since = {"since": NOW - timedelta(hours=HOURS)}
    with store.write() as transaction:
        for statement in (_CHAT, _DOCS, _SPANS, *_OTHERS):
            transaction.execute(statement, since if "$since" in statement else None)
