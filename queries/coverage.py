"""Metric rows and columns in, one SQL statement over `requests` out: of how many requests of a replica and engine each is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from queries.metric_sql import MetricRow, columns_of, counts, known
from queries.parts import quoted

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
DRAFTS = ("draft_tokens", "accepted_tokens", "verify_steps", "accepted_by_position", "draft_acceptance")
# What was refused or given up before an engine said a word of it: the tap, a gateway or a client alone saw it.
UNSERVED = "engine is null and outcome in ('error', 'aborted')"
# Several samples or prompts of one call: vLLM has a span of each, says n = 1 on it, and states more tokens in the answer than one span has.
SEVERAL = "samples_n > 1 or (list_contains(flags, 'trap:body_contradicts_output') and list_has_any(flags, ['duplicate_leg', 'retried']))"
NOTHING: Mapping[str, Sequence[str]] = MappingProxyType({})
# Signs that a request should have what a metric needs, whether or not it has.
SIGNS = {
    "speculates": f"({DRAFTING}) and (lower(levers['speculation']) not in ({OFF}) or arms['speculation'] = 'treated')",
    "moves": "kv_transfer_s is not null or kv_transfer_bytes is not null or prefill_replica <> replica or topology like 'pd-%' "
    f"or lower(levers['disaggregation']) not in ({OFF}) or arms['disaggregation'] = 'treated'",
    "has_body": "list_contains(map_values(provenance), 'body')",
    "halves": "decode_replica is null and list_contains(flags, 'partial')",
}


def coverage(columns: Sequence[str], metrics: Sequence[MetricRow], of_one: Mapping[str, Sequence[str]] = NOTHING) -> str:
    """One row per replica and engine of the requests that started from $since to $until: how many, the last end, version, who prefilled.

    Those that no engine served (`is_unserved`) are a row of their own. Then how many have each column (`<column>_n`), each sign, each
    metric's inputs (`known:<metric>`), and count for it (`counts:<metric>`). `of_one` has the engines that say a column only where one
    answer was asked for (not `SEVERAL`). A name of `DRAFTS` or `of_one`, and a metric of such columns, is not asked of every request:
    `asked:<name>` is of how many, `several:<name>` of how many not for `of_one`'s sake.
    """
    several = _several(columns, metrics, of_one)
    asked = {name: _asked(name, several.get(name, "false")) for name in (*DRAFTS, *several)}

    def of(name: str, condition: str) -> str:
        return f"count(*) filter (where ({asked.get(name, 'true')}) and ({condition}))"

    items = [
        "replica", "engine", f"({UNSERVED}) is true as is_unserved",
        "count(*) as requests", "max(ended_at) as last_seen_at", "arg_max(engine_version, ended_at) as version",
        "list(distinct prefill_replica) filter (where prefill_replica <> replica) as prefilled_by",
        *(f'{of(column, KNOWN_WHEN.get(column, _is_there(column)))} as "{column}_n"' for column in columns),
        "count(*) filter (where is_settled = false) as unsettled",
        *(f'count(*) filter (where {condition}) as "{sign}"' for sign, condition in SIGNS.items()),
        *(f'{of(metric.name, known(metric))} as "known:{metric.name}"' for metric in metrics),
        *(f'{of(metric.name, counts(metric))} as "counts:{metric.name}"' for metric in metrics),
        *(f'count(*) filter (where {condition}) as "asked:{name}"' for name, condition in asked.items()),
        *(f'count(*) filter (where {condition}) as "several:{name}"' for name, condition in several.items()),
    ]  # fmt: skip
    return f"select {', '.join(items)} from requests where started_at >= $since and started_at <= $until group by all"


def _several(columns: Sequence[str], metrics: Sequence[MetricRow], of_one: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Of columns and metrics, the requests for several answers of which an engine does not say them."""
    found = {}
    for name, inputs in [*((one, [one]) for one in columns), *((one.name, columns_of(one)) for one in metrics)]:
        said = [_unsaid(column, of_one[column]) for column in inputs if column in of_one]
        if said:
            found[name] = f"({SEVERAL}) and ({' or '.join(said)})"
    return found


def _unsaid(column: str, engines: Sequence[str]) -> str:
    return f"(engine in ({', '.join(map(quoted, engines))}) and {column} is null)"


def _asked(name: str, several: str) -> str:
    drafting = DRAFTING if name in DRAFTS else "true"
    return f"({drafting}) and ({several}) is not true"


def _is_there(column: str) -> str:
    return f'"{column}" is not null'
