"""The sums behind a number: a lever, segment, metric and block range in; SQL over `requests`, its rows and their hash out.

Durations are summed as whole nanoseconds, and shares as billionths: sums of floats change with thread order, sums of integers do not. A
value beyond 64 bits counts as missing, and so does a sum beyond them: no row that a sender made up may keep the others from being judged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

import polars as pl

from alerts import canonical, wording
from alerts.effects import Effect
from pipeline.metrics import TAILS, Metric, judged
from pipeline.segments import JUDGING_KEYS, SPECULATION_KEYS, keys_for
from queries.cells_histogram import FIRST, RATIO
from queries.metric_sql import arithmetic
from queries.store import Store

BLOCK_S = 300
# A request whose arm is not stated is treated, unless the lever's setting says off.
_ARM = "coalesce(arms[$lever], case when lower(levers[$lever]) not in ('off', 'none', '0', 'disabled', 'false') then 'treated' end)"
_OF_ARMS = ("control", "switchback", "premise", "none")
_NAME = re.compile(r"[a-z_]+")
_FRACTION = re.compile(r"^\w+ / \w+$|\d\.\d")
_SHARES = ("kv_usage", "communication_fraction")
NANO = 1e9
_KEYS = frozenset({*JUDGING_KEYS, *SPECULATION_KEYS, "tenant", "batch_bucket"})


class Question(NamedTuple):
    """A closed question: text and parameters that JSON can carry."""

    sql: str
    params: Mapping[str, str]


class Sums(NamedTuple):
    """A question with what it gave: its columns, the hash of its rows, where the columns it reads came from, and of which metric."""

    question: Question
    columns: tuple[str, ...]
    result_hash: str
    provenance: Mapping[str, str]
    metric: str = ""


def question(lever: str, segment: str, effect: Effect) -> Question:
    """Per block and arm of a segment, the counts and whole-number sums that the effect's metric is made of; of a percentile by its bins."""
    metric = judged()[effect.metric]
    where, params = _scope(lever, segment, effect)
    known = f"({arithmetic(metric.numerator)}) is not null and ({arithmetic(metric.denominator)}) is not null"
    known += f" and ({arithmetic(metric.known_when)})" if metric.known_when else ""
    sums = [
        "count(*) as requests",
        f"count(*) filter (where {known}) as n",
        f"{_sum(metric.numerator, metric.unit, known)} as numerator",
        f"{_sum(metric.denominator, 'tokens', known)} as denominator",
    ]
    if metric.name in TAILS:
        sums = ["count(*) as requests", f"{_bin(metric, known)} as bin"]
    if metric.name == "net_itl_s":
        sums += ["count(ttft_s) as ttft_n", f"{_sum('ttft_s', 's', 'true')} as ttft_ns"]
    block = f"epoch_us(started_at) // {BLOCK_S * 1_000_000} * {BLOCK_S} as block_started_at_s"
    sql = f"select {block}, {_ARM} as arm, {', '.join(sums)} from requests where {where} group by all order by all"
    return Question(sql, params)


def scale(text: str, unit: str) -> float:
    """By how much what is summed is multiplied, so that it is whole: 1e9 for times and shares, 1 for counts, tokens and bytes."""
    names = _NAME.findall(text)
    is_whole = "bytes" in text or not (any(name.endswith("_s") or name in _SHARES for name in names) or _FRACTION.search(text))
    return 1.0 if is_whole and unit not in ("s", "s/token") else NANO


def late(lever: str, segment: str, effect: Effect, as_of: datetime) -> Question:
    """How many of the requests behind a number have a span that came after a moment, as far as their spans are kept."""
    where, params = _scope(lever, segment, effect)
    came = "select distinct trace_id from spans where received_at > $as_of::timestamptz"
    sql = f"select count(*) as requests from requests semi join ({came}) using (trace_id) where {where}"
    return Question(sql, params | {"as_of": wording.utc(as_of)})


def ask(store: Store, lever: str, segment: str, effect: Effect) -> Sums | None:
    """The question asked now: its columns, the hash of its rows, and the provenance of the columns it read.

    None for a segment that is no set of columns, such as `other`, and for what compares other requests than those of the two arms.
    """
    if not _KEYS.issuperset(json.loads(segment)) or effect.basis not in _OF_ARMS:
        return None
    asked = question(lever, segment, effect)
    frame = store.frame(asked.sql, asked.params)
    return Sums(asked, tuple(frame.columns), result_hash(frame), _provenance(store, lever, segment, effect), effect.metric)


def result_hash(frame: pl.DataFrame) -> str:
    """The hash of a result's rows, in their order."""
    return canonical.digest([list(row) for row in frame.rows()])


def columns_of(metric: Metric) -> set[str]:
    """The columns of `requests` that a metric reads, and words of its arithmetic."""
    extra = "ttft_s" if metric.name == "net_itl_s" else ""
    return set(_NAME.findall(f"{metric.numerator} {metric.denominator} {extra}"))


def _provenance(store: Store, lever: str, segment: str, effect: Effect) -> dict[str, str]:
    where, params = _scope(lever, segment, effect)
    rows = store.rows(
        "select entry.key as name, string_agg(distinct entry.value, ', ' order by entry.value) as kinds"
        f" from (select unnest(map_entries(provenance)) as entry from requests where {where}) group by all order by name",
        params,
    )
    wanted = columns_of(judged()[effect.metric])
    return {row["name"]: row["kinds"] for row in rows if row["name"] in wanted}


def _scope(lever: str, segment: str, effect: Effect) -> tuple[str, dict[str, str]]:
    keys: dict[str, str] = json.loads(segment)
    params = {"lever": lever, "since": wording.utc(effect.since), "until": wording.utc(effect.until)}
    terms = [
        "started_at >= $since::timestamptz and started_at < $until::timestamptz",
        f"{_ARM} in ('treated', 'control')",
    ]
    for key in sorted({*keys_for(lever), *keys}) if keys else ():
        if key in keys:
            terms.append(f"{key} = $segment_{key}")
            params[f"segment_{key}"] = keys[key]
        else:
            terms.append(f"{key} is null")
    return " and ".join(terms), params


def _bin(metric: Metric, known: str) -> str:
    """The bin of 2 % in which a request's value lies, as histograms have it; null for 0 and for what is not known."""
    value = arithmetic(metric.percentiles_of or metric.numerator)
    return f"case when {known} and ({value}) > 0 then try_cast(floor(ln(({value}) / {FIRST}) / ln({RATIO})) as bigint) end"


def _sum(text: str, unit: str, known: str) -> str:
    times = scale(text, unit)
    whole = arithmetic(text) if times == 1 else f"round(({arithmetic(text)}) * 1e9)"
    return f"try_cast(sum(try_cast({whole} as bigint)) filter (where {known}) as bigint)"
