"""A scenario and a seed in, the effects of its hours as judging reads them out: told over the wire, stored and compared as by a server.

`rounded` leaves of their numbers what judging needs, so that files of them are small.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars as pl
from demo_cells import BEGAN_NS, HOUR_NS

from alerts import streams
from alerts.chain import Policy
from alerts.effects import effect_name
from collectors.recorded import Body
from demo.fleet import Event, Fleet
from demo.scenarios.layout import Scenario
from demo.telemetry import Telemetry
from leverwatch.engine_room import EngineRoom
from leverwatch.loading import Here
from leverwatch.local import Local
from leverwatch.switchback_settings import watched
from queries.store import Store

SLICE_HOURS, BODY_BYTES = 1.0, 3_000_000
NOT_PLAYED = ("judge", "follow up", "seal", "merge", "retain")
"""Of a server's jobs, those that no effect comes of."""
FIGURES, LOG_DECIMALS, NO_EVIDENCE = 4, 1, 0.0
LOGS = ("evidence_below", "evidence_above")
SETTINGS = "select lever, scope, setting, since, is_change from settings_in_use order by all"


class History(NamedTuple):
    """What policies read of a scenario's hours: effects, and the settings that were in use."""

    effects: pl.DataFrame
    settings: pl.DataFrame


def history(scenario: Scenario, seed: int, from_hour: float, until_hour: float, policies: Sequence[Policy]) -> History:
    """What a server that loses nothing has of the hours from the one to before the other, for these policies, which it loaded."""
    fleet = Fleet(scenario, BEGAN_NS, seed, from_hour=from_hour)
    telemetry = Telemetry(scenario.disorder, BEGAN_NS)
    with tempfile.TemporaryDirectory() as folder, Local.open(Path(folder)) as connection:
        way, hour = Here(connection, "demo"), from_hour
        while hour < until_hour:
            hour = min(hour + SLICE_HOURS, until_hour)
            for body in _bodies(telemetry, fleet.until(BEGAN_NS + round(hour * HOUR_NS))):
                way.put(body)
            _work(connection.room)
        return read(connection.room.store, policies)


def read(store: Store, policies: Iterable[Policy]) -> History:
    """What is stored of all that these policies name."""
    named = tuple(policies)
    found = streams.effects(store, {policy.lever: streams.NEVER for policy in named}, named)
    return History(found.drop("block_ended_at").sort("lever", "segment", "metric", "until"), store.frame(SETTINGS))


def asked(policies: Iterable[Policy]) -> dict[str, list[str]]:
    """What these policies read of each lever, sorted: metrics, and the thresholds that evidence of premises is kept of."""
    named = tuple(policies)
    found: dict[str, set[str]] = {}
    for policy in named:
        found.setdefault(policy.lever, set()).update(map(effect_name, _metrics(msgspec.to_builtins(policy))))
    for one in watched(named):
        found[one.lever].add(f"{one.metric} {'above' if one.is_above else 'below'} {one.threshold:g}")
    return {lever: sorted(names) for lever, names in sorted(found.items())}


def rounded(effects: pl.DataFrame) -> pl.DataFrame:
    """The same with four figures of each number, and a tenth of each logarithm of evidence, where it speaks for anything at all."""
    numbers = [name for name, kind in effects.schema.items() if kind == pl.Float64()]
    logs = [pl.col(name).list.eval(pl.element().clip(NO_EVIDENCE).round(LOG_DECIMALS)) for name in LOGS]
    told = pl.element().struct.with_fields(pl.field("log_m").clip(NO_EVIDENCE).round(LOG_DECIMALS))
    return effects.with_columns(
        *(pl.col(name).round_sig_figs(FIGURES) for name in numbers), *logs, pl.col("premise_evidence").list.eval(told)
    )


def _metrics(part: Any) -> Iterator[str]:
    """Every metric that a part of a policy names."""
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list | tuple) else ()
    if isinstance(part, dict) and "metric" in part:
        yield part["metric"]
    for one in inner:
        yield from _metrics(one)


def _bodies(telemetry: Telemetry, events: Iterable[Event]) -> Iterator[Body]:
    """What is told of the events, many exports in one body: messages that follow each other are one that holds what both held."""
    waiting: dict[str, list[bytes]] = {}
    for told in telemetry.bodies(events):
        held = waiting.setdefault(told.signal, [])
        held.append(told.content)
        if sum(map(len, held)) > BODY_BYTES:
            yield Body(told.signal, b"".join(waiting.pop(told.signal)))
    yield from (Body(signal, b"".join(held)) for signal, held in waiting.items())


def _work(room: EngineRoom) -> None:
    """Every job until nothing waits for it, in order."""
    for name, step in room.steps():
        while name not in NOT_PLAYED and step():
            pass
