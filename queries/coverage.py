"""Metric rows and columns in, one SQL statement over `requests` out: of how many requests of a replica and engine each is known."""

from __future__ import annotations

from collections.abc import Sequence

from queries.metric_sql import MetricRow, counts, known

OFF = "'off', 'none', '0', 'disabled', 'false'"
# Columns that are known in another way than by not being null.
KNOWN_WHEN = {
    "replica": "replica is not null and not list_contains(flags, 'replica_from_sender')",
    "outcome": "outcome <> 'unknown'",
    "levers": "cardinality(levers) > 0",
    "arms": "cardinality(arms) > 0",
}
# A control replica names the lever that it is the control of, and drafts nothing: its requests are not asked for drafts.
DRAFTING = "arms['speculation'] is distinct from 'control'"
ASKED_WHEN = dict.fromkeys(("draft_tokens", "accepted_tokens", "verify_steps", "accepted_by_position", "draft_acceptance"), DRAFTING)
# Signs that a request should have what a metric needs, whether or not it has.
SIGNS = {
    "speculates": f"({DRAFTING}) and (lower(levers['speculation']) not in ({OFF}) or arms['speculation'] = 'treated')",
    "moves": "kv_transfer_s is not null or kv_transfer_bytes is not null or prefill_replica <> replica or topology like 'pd-%' "
    f"or lower(levers['disaggregation']) not in ({OFF}) or arms['disaggregation'] = 'treated'",
    "has_body": "list_contains(map_values(provenance), 'body')",
    "halves": "decode_replica is null and list_contains(flags, 'partial')",
}


def coverage(columns: Sequence[str], metrics: Sequence[MetricRow]) -> str:
    """One row per replica and engine of the requests that started from $since to $until: how many, the last end, version, who prefilled.

    Then how many have each column (`<column>_n`), each sign, each metric's inputs (`known:<metric>`), and count for it (`counts:<metric>`).
    Of names in `ASKED_WHEN` only the requests that it takes count; `asked:<name>` is how many these are.
    """
    items = [
        "replica", "engine", "count(*) as requests", "max(ended_at) as last_seen_at", "arg_max(engine_version, ended_at) as version",
        "list(distinct prefill_replica) filter (where prefill_replica <> replica) as prefilled_by",
        *(f'{_count(column)} as "{column}_n"' for column in columns),
        *(f'count(*) filter (where {condition}) as "{sign}"' for sign, condition in SIGNS.items()),
        *(f'count(*) filter (where {_asked(metric.name)} and ({known(metric)})) as "known:{metric.name}"' for metric in metrics),
        *(f'count(*) filter (where {_asked(metric.name)} and ({counts(metric)})) as "counts:{metric.name}"' for metric in metrics),
        *(f'count(*) filter (where {condition}) as "asked:{name}"' for name, condition in ASKED_WHEN.items()),
    ]  # fmt: skip
    return f"select {', '.join(items)} from requests where started_at >= $since and started_at <= $until group by replica, engine"


def _count(column: str) -> str:
    condition = KNOWN_WHEN.get(column, f'"{column}" is not null')
    return f"count(*) filter (where {_asked(column)} and {condition})"


def _asked(name: str) -> str:
    return f"({ASKED_WHEN[name]})" if name in ASKED_WHEN else "true"
