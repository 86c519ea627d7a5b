"""Two sets of requests and a period in, one SQL statement out that counts every key's values in both. Nothing here runs it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from queries import conditions
from queries.coverage import OFF
from queries.report import COMPUTED_KEYS

LIMIT_REQUESTS = 100_000  # looked at of each set
LIMIT_KEYS = 20  # answered, where no other number is asked for
LIMIT_VALUES = 200  # named of a key; the others are counted together
SLOW_SHARE = 0.95
BINS_PER_E = 100  # numbers within 1 % of each other are counted together
ARMS = ("treated", "control", "disabled_in_place")
PERIOD = {"since": "started_at >= $since::timestamptz", "until": "started_at < $until::timestamptz"}
LEFT_OUT = ("request_id", "trace_id")  # each request has its own
TAKEN_KEYS = "a column of requests, lever.<name>, arm.<name>, hour, day"
PLACES = 1 << 20
# A bucket follows from its column: where one of them defines a set, so does the other.
BUCKETS = {
    "input_bucket": "prompt_tokens",
    "output_bucket": "output_tokens",
    "batch_bucket": "batch_at_admission",
    "concurrency_bucket": "concurrency",
    "temperature_bucket": "temperature",
    "cache_class": "cached_tokens",
}


class ExplainError(ValueError):
    """The two sets cannot be compared; says which word and what is taken."""


@dataclass(frozen=True, slots=True)
class _Key:
    """A key, how it is read, and whether it is a `text`, a `number`, or holds `entries` that are keys of their own."""

    name: str
    expression: str
    kind: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A statement over `requests`, its parameters, and the keys that the sets are made by.

    It gives one row per value of a key: `key`, `kind` (`value`, `bin` of a number, `sets` for the sizes), `value` (null for all those that
    are not named), `upper` (the largest number of a bin), `count_a`, `count_b`. `sets` are the tables that say which requests are in them.
    """

    sql: str
    params: dict[str, Any]
    defining: frozenset[str]
    sets: str


def comparison(
    a: str,
    b: str | None,
    columns: Mapping[str, str],
    by: Sequence[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    where: str | None = None,
) -> Comparison:
    """What tells set `a` from set `b`, from the rest where `b` is None; `columns` are those of `requests` with their types.

    The sets and `where` are a stranger's text: the statement may only be run by `queries.sandbox`.

    Raises:
        ExplainError: an unknown set or key.
    """
    condition_a = _set(a, columns)
    condition_b = _set(b, columns) if b else f"not ({condition_a}\n)"
    asked = {name: moment for name, moment in (("since", since), ("until", until)) if moment is not None}
    _refuse_unsound({"A": condition_a, "B": condition_b, "where": where})
    scope = " and ".join([*(PERIOD[name] for name in asked), *([f"({where}\n)"] if where else [])])
    keys = [_key(name, columns) for name in by or _every(columns)]
    parts = [
        f"scope as not materialized (select * from requests{f' where {scope}' if scope else ''})",
        f"sets as not materialized (select *, coalesce(({condition_a}\n), false) as in_a, coalesce(({condition_b}\n), false) as in_b, "
        f"(hash(request_id) % {PLACES})::bigint as place from scope)",
        f"sizes as materialized (select {_SIZES} from sets)",
    ]
    sets = ", ".join(parts)
    parts += [
        f"looked_at as materialized (select {_read(keys)}, {looked('a')} as is_a, {looked('b')} as is_b from sets, sizes "
        f"where {looked('a')} or {looked('b')})",
        *_counted(keys),
    ]
    select = f"{_SETS} union all by name select * from texts union all by name select * from numbers"
    params = {name: moment.isoformat() for name, moment in asked.items()}
    return Comparison(f"with {', '.join(parts)} {select}", params, _defining(condition_a, condition_b, columns), sets)


def _refuse_unsound(asked: Mapping[str, str | None]) -> None:
    for name, text in asked.items():
        if text and (why := conditions.fault(text)):
            msg = f"{name} {text[:80]!r}: {why}; one condition over columns of requests is taken"
            raise ExplainError(msg)


_SIZES = (
    "count(*) filter (where in_a) as size_a, count(*) filter (where in_b) as size_b, count(*) filter (where in_a and in_b) as size_both, "
    "count(*) filter (where not in_a and not in_b) as size_neither"
)
_SETS = (
    "select 'size' as key, 'sets' as kind, size_a as count_a, size_b as count_b from sizes "
    "union all by name select 'left' as key, 'sets' as kind, size_both as count_a, size_neither as count_b from sizes "
    "union all by name select 'looked_at' as key, 'sets' as kind, count(*) filter (where is_a) as count_a, "
    "count(*) filter (where is_b) as count_b from looked_at"
)
_COUNTS = "count(*) filter (where is_a) as count_a, count(*) filter (where is_b) as count_b"


def looked(name: str) -> str:
    """Whether a request of a set is looked at: always the same ones, chosen by their id."""
    return f"(in_{name} and place * size_{name} < {LIMIT_REQUESTS * PLACES})"


def named_set(text: str) -> str:
    """The condition that `slow:<column>` or `<arm>:<lever>` stands for; the words are taken as they are."""
    name, _, rest = text.partition(":")
    if name == "slow":
        return f"{rest} > (select quantile_cont({rest}, {SLOW_SHARE}) from scope)"
    setting = f"levers['{rest}']"
    told = f"case when lower({setting}) in ({OFF}) then 'disabled_in_place' when {setting} is not null then 'treated' end"
    return f"coalesce(arms['{rest}'], {told}) = '{name}'"


def _set(text: str, columns: Mapping[str, str]) -> str:
    """A set's condition: a named set's, else the text itself."""
    name, _, rest = text.strip().partition(":")
    if name == "slow" and re.fullmatch(r"\w*", rest):
        column = rest or "e2e_s"
        if not _is_number(columns.get(column, "")):
            numbers = [known for known, kind in columns.items() if _is_number(kind)]
            msg = f"set {text!r}: {column!r} is no number of requests{_near(column, numbers)} taken: slow:<column>, such as slow:ttft_s"
            raise ExplainError(msg)
        return named_set(f"slow:{column}")
    if name in ARMS and re.fullmatch(r"[a-z_][a-z0-9_]*", rest):
        return named_set(text.strip())
    if not text.strip() or (re.fullmatch(r"[A-Za-z_]+(:\w*)?", text.strip()) and text.strip() not in columns):
        taken = "slow, slow:<column>, treated:<lever>, control:<lever>, disabled_in_place:<lever>, or a condition over columns of requests"
        msg = f"set {text!r} is unknown; taken: {taken}, such as \"model = 'chat-70b'\""
        raise ExplainError(msg)
    return text


def _every(columns: Mapping[str, str]) -> list[str]:
    """What is compared where no key is named."""
    named = [name for name, kind in columns.items() if _is_number(kind) or kind == "VARCHAR" or name in _ENTRIES]
    return [*(name for name in named if name not in LEFT_OUT), *COMPUTED_KEYS]


def _key(name: str, columns: Mapping[str, str]) -> _Key:
    kind, _, rest = name.partition(".")
    if kind in ("lever", "arm") and re.fullmatch(r"[a-z_][a-z0-9_]*", rest):
        return _Key(name, f"{kind}s['{rest}']", "text")
    if name in COMPUTED_KEYS:
        return _Key(name, f"{COMPUTED_KEYS[name]}::varchar", "text")
    if name not in columns:
        msg = f"key {name!r} is unknown{_near(name, [*columns, *COMPUTED_KEYS])} taken: {TAKEN_KEYS}"
        raise ExplainError(msg)
    if _is_number(columns[name]):
        return _Key(name, f'"{name}"::double', "number")
    if name in ("levers", "arms", "flags"):
        return _Key(name, name, "entries")
    return _Key(name, f'"{name}"::varchar', "text")


def _read(keys: Sequence[_Key]) -> str:
    """What is kept of the requests that are looked at: no more than the keys, since the statement has little memory."""
    return ", ".join(f'{key.expression} as "{key.name}"' for key in keys)


def _counted(keys: Sequence[_Key]) -> list[str]:
    """The counts by value and by bin. Each request's keys become rows that are counted together: key by key it takes too much memory."""
    entries = {key.name: _ENTRIES[key.name] for key in keys if key.kind == "entries"}
    sources = [_long([key.name for key in keys if key.kind == "text"], "varchar"), *entries.values()]
    numbers = _long([key.name for key in keys if key.kind == "number"], "double")
    return [
        f"valued as (select key, value, {_COUNTS} from ({' union all '.join(sources)}) where value is not null group by key, value)",
        "placed as (select valued.*, row_number() over (partition by key order by count_a / greatest(size_a, 1) "
        "+ count_b / greatest(size_b, 1) desc, value) as nth from valued, sizes)",
        f"texts as (select key, 'value' as kind, case when nth <= {LIMIT_VALUES} then value end as value, sum(count_a)::bigint as count_a, "
        "sum(count_b)::bigint as count_b from placed group by all)",
        f"numbers as (select key, 'bin' as kind, max(value) as upper, {_COUNTS} from ({numbers}) where value is not null "
        f"group by key, {_BIN})",
    ]


def _long(names: Sequence[str], kind: str) -> str:
    keys, values = ", ".join(f"'{name}'" for name in names), ", ".join(f'"{name}"' for name in names)
    return f"select unnest([{keys}]::varchar[]) as key, unnest([{values}]::{kind}[]) as value, is_a, is_b from looked_at"


# 0 alone, other numbers with those of about the same logarithm.
_BIN = f"case when value = 0 then -1e9 else sign(value) * (floor(ln(abs(value)) * {BINS_PER_E}) + 1e6) end"
_ENTRIES = {
    "levers": "select 'lever.' || e.key, e.value, is_a, is_b from (select unnest(map_entries(levers)) as e, is_a, is_b from looked_at)",
    "arms": "select 'arm.' || e.key, e.value, is_a, is_b from (select unnest(map_entries(arms)) as e, is_a, is_b from looked_at)",
    "flags": "select 'flag.' || flag, 'true', is_a, is_b from (select unnest(flags) as flag, is_a, is_b from looked_at)",
}


def _is_number(kind: str) -> bool:
    return kind in ("DOUBLE", "FLOAT") or kind.endswith("INT") or kind == "INTEGER"


def _near(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {near[0]!r}?" if near else ";"


def _defining(a: str, b: str, columns: Mapping[str, str]) -> frozenset[str]:
    """The keys that the conditions read: columns, what follows from them alone, and levers and arms by name."""
    text = f"{a} {b}"
    literals = set(re.findall(r"'((?:[^']|'')*)'", text))
    words = {word.lower() for word in re.findall(r"\w+", re.sub(r"'(?:[^']|'')*'", " ", text))}
    found = {name for name in columns if name in words}
    found |= {bucket for bucket, column in BUCKETS.items() if column in words}
    found |= {column for bucket, column in BUCKETS.items() if bucket in words}
    found |= set(COMPUTED_KEYS) if words & {"started_at", "ended_at"} else set()
    for name, prefix in (("levers", "lever."), ("arms", "arm."), ("flags", "flag.")):
        if name in words:
            found |= {f"{prefix}{literal}" for literal in literals} or {prefix}
    return frozenset(found)
