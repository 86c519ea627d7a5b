"""Effects at the ends of blocks in, gaps filled out: what levers without a control arm leave is measured once an hour of event time."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import polars as pl

from pipeline import before_after_effects, natural_effects, switchback_effects, uncontrolled
from pipeline.inference import natural
from pipeline.measure import BLOCK_S
from pipeline.schedule_rows import Period
from pipeline.segments import keys_for
from pipeline.uncontrolled import SCHEMA
from queries import files
from queries import natural as asking
from queries.store import Store, Transaction

WINDOW = timedelta(hours=24)
ALPHA = 0.05  # of a lever's segments without a control arm together


@dataclass(slots=True)
class _Hour:
    """What is known at an hour: the levers that were measured then, and what was found of them."""

    levers: set[str]
    rows: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Found:
    """What was measured in one run: rows of `uncontrolled_effects` and of `uncontrolled_hours`."""

    rows: list[pl.DataFrame] = field(default_factory=list)
    hours: list[tuple[str, datetime]] = field(default_factory=list)


def filled(store: Store, frames: Sequence[pl.DataFrame], schedule: Sequence[Period]) -> tuple[list[pl.DataFrame], Found]:
    """(the effects of each block's end with gaps filled, what was measured for that).

    At a block's end the hour that ended last counts, so that neither the order of blocks nor when anybody looks changes anything.
    """
    scheduled = {one.lever for one in schedule}
    hours: dict[datetime, _Hour] = {}
    made, new = [], Found()
    for frame in frames:
        pairs = uncontrolled.gaps(frame, scheduled)
        if pairs.is_empty():
            made.append(frame)
            continue
        at = frame["until"][0].replace(minute=0, second=0, microsecond=0)
        known = hours.setdefault(at, _known(store, at)) if at not in hours else hours[at]
        for lever in sorted(set(pairs["lever"]) - known.levers):
            rows = measured(store, lever, at, pairs.filter(pl.col("lever") == lever)["segment"].to_list(), schedule)
            known.levers.add(lever)
            known.rows = pl.concat([known.rows, rows])
            new.rows.append(rows)
            new.hours.append((lever, at))
        made.append(uncontrolled.completed(frame, known.rows, scheduled))
    return made, new


def measured(store: Store, lever: str, at: datetime, segments: Collection[str], schedule: Sequence[Period]) -> pl.DataFrame:
    """What these segments of a lever compare with in the day before `at`: rows of `uncontrolled_effects`."""
    alpha = ALPHA / len(segments)
    found = [_switchback(store, lever, at, schedule, alpha), *_natural(store, lever, at, segments, alpha)]
    kept = [rows.filter(pl.col("segment").is_in(list(segments))) for rows in found if not rows.is_empty()]
    whole = [
        rows.select((pl.col(name) if name in rows.columns else pl.lit(None)).cast(kind).alias(name) for name, kind in SCHEMA.items())
        for rows in (one.with_columns(pl.lit(at).alias("measured_at")) for one in kept)
    ]
    return pl.concat(whole) if whole else pl.DataFrame(schema=SCHEMA)


def keep(transaction: Transaction, found: Found) -> None:
    """Writes what was measured."""
    for rows in found.rows:
        if not rows.is_empty():
            transaction.insert("uncontrolled_effects", rows)
    if found.hours:
        hours = pl.DataFrame(found.hours, schema={"lever": pl.String(), "measured_at": SCHEMA["measured_at"]}, orient="row")
        transaction.insert("uncontrolled_hours", hours)


def _known(store: Store, at: datetime) -> _Hour:
    levers = store.rows("select lever from uncontrolled_hours where measured_at = $at", {"at": at})
    rows = store.frame("select * from uncontrolled_effects where measured_at = $at", {"at": at})
    return _Hour({row["lever"] for row in levers}, rows.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items()))


def _switchback(store: Store, lever: str, at: datetime, schedule: Sequence[Period], alpha: float) -> pl.DataFrame:
    """Of pairs that lie wholly within the day: half a pair would be held against a whole one."""
    ends: dict[tuple[str, int], list[Period]] = {}
    for one in schedule:
        if one.lever == lever:
            ends.setdefault((one.replica, one.pair), []).append(one)
    inside = [both for both in ends.values() if min(one.since for one in both) >= at - WINDOW and max(one.until for one in both) <= at]
    if not inside:
        return pl.DataFrame()
    cells = store.frame(files.question("switchback_cells"), {"lever": lever, "since": at - WINDOW, "until": at})
    return switchback_effects.effects(cells, [one for both in inside for one in both], lever, alpha)


def _natural(store: Store, lever: str, at: datetime, segments: Collection[str], alpha: float) -> list[pl.DataFrame]:
    experiments = natural.of_lever(lever)
    one_in = asking.every(_requests(store, at))
    statement = asking.statement(*(one.name for one in experiments), before_after_effects.EXPERIMENT, one_in=one_in)
    keys = [*keys_for(lever), *(["tenant"] if any("tenant" in json.loads(segment) for segment in segments) else [])]
    asked = {"lever": lever, "since": at - WINDOW, "until": at, "block_s": BLOCK_S, "keys": keys}
    sums = store.frame(statement, asked)
    by_name = {name: rows for (name,), rows in sums.group_by("experiment")}
    found = [natural_effects.effects(by_name[one.name], one, lever, alpha) for one in experiments if one.name in by_name]
    changes = by_name.get(before_after_effects.EXPERIMENT)
    if changes is not None:
        found.append(before_after_effects.effects(changes, lever))
    return [_noted(rows, one_in) for rows in found]


def _noted(rows: pl.DataFrame, one_in: int) -> pl.DataFrame:
    """The rows, each saying so where not all requests were compared."""
    if one_in == 1 or rows.is_empty():
        return rows
    return rows.with_columns(pl.concat_str("note", pl.lit(f"one request in {one_in} compared"), separator="; ", ignore_nulls=True))


def _requests(store: Store, at: datetime) -> int:
    """How many requests the day before began."""
    day = {"since": at - WINDOW, "until": at}
    count: int = store.rows("select count(*) as n from requests where started_at >= $since and started_at < $until", day)[0]["n"]
    return count
