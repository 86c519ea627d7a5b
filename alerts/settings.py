"""Requests by block in, which setting of each lever a scope's traffic has out, and where another took over: `settings_in_use`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple

import polars as pl

from pipeline import segments
from queries import files
from queries.store import Store, Transaction

BLOCK_S = 300
BLOCK = timedelta(seconds=BLOCK_S)
BLOCKS_AT_ONCE = 72
LIMIT_REQUESTS = 50_000  # of a block, on average: of a busier one its end is read
ENOUGH, STREAK = 20, 3  # requests in which one block tells; with fewer it takes so many blocks in a row
OFF, OFF_SHARE, OFF_STREAK = "off", 0.005, 6  # a lever may be tried on few percent of the requests for long
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = pl.Datetime("us", "UTC")
_IN_USE = {"lever": pl.String(), "scope": pl.String(), "setting": pl.String(), "since": _TIME, "is_change": pl.Boolean()}
_PENDING = {"lever": pl.String(), "scope": pl.String(), "setting": pl.String(), "since": _TIME, "streak": pl.Int64()}


class Place(NamedTuple):
    """A lever in a scope: JSON text of model, hardware and topology, as far as they are known."""

    lever: str
    scope: str


class Held(NamedTuple):
    """What a place has: its setting, and the one that may take over, since when and in how many blocks in a row."""

    setting: str
    pending: str = ""
    since: datetime = _NEVER
    streak: int = 0


class Change(NamedTuple):
    """A setting that took over, with the block that began it; `before` is empty where none had been seen."""

    place: Place
    before: str
    setting: str
    since: datetime


class InUse:
    """What was in use when and where."""

    def __init__(self, rows: Iterable[tuple[str, str, str, datetime]]) -> None:
        self._by_lever: dict[str, list[tuple[dict[str, str], str, datetime]]] = {}
        for lever, scope, setting, since in rows:
            self._by_lever.setdefault(lever, []).append((json.loads(scope), setting, since))

    def at(self, lever: str, keys: Mapping[str, str], until: datetime) -> tuple[str, datetime] | None:
        """The newest setting of the scopes that these keys do not contradict, and since when; None where none is known by then."""
        found = [(since, setting) for scope, setting, since in self._by_lever.get(lever, ()) if since < until and agrees(scope, keys)]
        if not found:
            return None
        since, setting = max(found)
        return setting, since

    def settings(self, lever: str, model: str | None, until: datetime) -> set[str]:
        """Every setting that a scope of the model has at a moment, `off` left out."""
        newest: dict[str, tuple[datetime, str]] = {}
        for scope, setting, since in self._by_lever.get(lever, ()):
            if since < until and scope.get("model") == model:
                text = segments.canonical(scope)
                newest[text] = max(newest.get(text, (_NEVER, "")), (since, setting))
        return {setting for _, setting in newest.values()} - {OFF}


def agrees(scope: Mapping[str, str], keys: Mapping[str, str]) -> bool:
    """Whether no key of both has two values."""
    return all(keys.get(key, value) == value for key, value in scope.items())


def in_use(store: Store) -> InUse:
    """All settings that were ever seen in use."""
    rows = store.frame("select lever, scope, setting, since from settings_in_use order by since")
    return InUse(rows.iter_rows())


def taken_over(before: Held | None, counts: Mapping[str | None, int], started_at: datetime) -> tuple[Held | None, bool]:
    """What a place has after a block with so many requests of each setting (None: not stated), and whether another setting took over."""
    newest = _leading(counts, was_there=before is not None)
    if before is None or newest is None:
        return (Held(newest), True) if newest is not None else (before, False)
    if newest == before.setting:
        return Held(before.setting), False
    streak, since = (before.streak + 1, before.since) if newest == before.pending else (1, started_at)
    if streak < _needed(newest, sum(counts.values())):
        return Held(before.setting, newest, since, streak), False
    return Held(newest, since=since), True


def _needed(setting: str, requests: int) -> int:
    if setting == OFF:
        return OFF_STREAK
    return 1 if requests >= ENOUGH else STREAK


def _leading(counts: Mapping[str | None, int], *, was_there: bool) -> str | None:
    """The setting of more than half of the treated requests; `off` where next to none is left of a lever that was there."""
    treated = {setting: n for setting, n in counts.items() if setting not in (None, OFF)}
    total, served = sum(treated.values()), sum(counts.values())
    if was_there and total < OFF_SHARE * served:
        return OFF if served >= ENOUGH else None
    return next((setting for setting, n in treated.items() if 2 * n > total), None)


def follow(held: dict[Place, Held], blocks: Iterable[Mapping[str, Any]]) -> Iterator[Change]:
    """Takes rows of `settings_blocks` in, in order; gives each setting that took over, and leaves in `held` what places have."""
    for (started_at, lever, model, hardware, topology), rows in groupby(blocks, key=_where):
        place = Place(lever, segments.canonical({"model": model, "hardware": hardware, "topology": topology}))
        before = held.get(place)
        after, took_over = taken_over(before, {row["setting"]: row["n"] for row in rows}, started_at)
        if after is not None:
            held[place] = after
        if after is not None and took_over:
            yield Change(place, before.setting if before else "", after.setting, after.since if before else started_at)


def _where(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["block_started_at"], row["lever"], row["model"], row["hardware"], row["topology"]


def read_next(store: Store) -> tuple[list[Change], datetime | None]:
    """Follows the blocks that closed since the last time, six hours of them at most; gives the changes and how far it read, if at all."""
    read: datetime | None = store.rows("select max(until) as until from settings_read")[0]["until"]
    asked = {"read": read or _NEVER, "limit_rows": BLOCKS_AT_ONCE}
    ends = store.frame("select until from closed_blocks where until > $read order by until limit $limit_rows", asked)["until"].to_list()
    if not ends:
        return [], None
    held = _held(store)
    before = dict(held)
    changes = list(follow(held, _blocks(store, ends)))
    with store.write() as transaction:
        transaction.execute("delete from settings_read")
        transaction.execute("insert into settings_read values ($until)", {"until": ends[-1]})
        _write(transaction, changes, {place: one for place, one in held.items() if one != before.get(place)})
    return changes, ends[-1]


def _blocks(store: Store, ends: Sequence[datetime]) -> list[dict[str, Any]]:
    period = {"since": ends[0] - BLOCK, "until": ends[-1]}
    requests: int = store.rows(files.question("settings_requests"), period)[0]["n"]
    share = min(1.0, LIMIT_REQUESTS * len(ends) / max(1, requests))
    asked = period | {"block_s": BLOCK_S, "from_s": BLOCK_S * (1.0 - share), "levers": list(segments.LEVERS)}
    return store.rows(files.question("settings_blocks"), asked | {"topology_levers": list(segments.TOPOLOGY_LEVERS)})


def _held(store: Store) -> dict[Place, Held]:
    newest = "select lever, scope, arg_max(setting, since) as setting from settings_in_use group by all"
    held = {Place(row["lever"], row["scope"]): Held(row["setting"]) for row in store.rows(newest)}
    for row in store.rows("select * from settings_pending"):
        place = Place(row["lever"], row["scope"])
        held[place] = held[place]._replace(pending=row["setting"], since=row["since"], streak=row["streak"])
    return held


def _write(transaction: Transaction, changes: Sequence[Change], held: Mapping[Place, Held]) -> None:
    rows = [(*change.place, change.setting, change.since, bool(change.before)) for change in changes]
    if rows:
        transaction.insert("settings_in_use", pl.DataFrame(rows, schema=_IN_USE, orient="row"))
    if held:
        places = pl.DataFrame(list(held), schema=["lever", "scope"], orient="row")
        old = "delete from settings_pending using incoming i where settings_pending.lever = i.lever and settings_pending.scope = i.scope"
        transaction.using(places, old)
        waiting = [(*place, one.pending, one.since, one.streak) for place, one in held.items() if one.streak]
        if waiting:
            transaction.insert("settings_pending", pl.DataFrame(waiting, schema=_PENDING, orient="row"))
