"""Every family of numbers that `serve`, `collect` and `work` can answer `/metrics` with, and the table of them for the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import elsewhere_rooms
from dashboards_rows import NOW
from prometheus_client.metrics_core import Metric as Family

from alerts.receivers import Receiver
from collectors.door import Door, reference_check
from collectors.lake_sink import Stored
from leverwatch import collect_app, work_app
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from leverwatch.observe.observer import Observer
from leverwatch.observe.store_numbers import lake_families
from leverwatch.receiving import Receiving
from leverwatch.refused import Refused
from leverwatch.served_numbers import ServedNumbers
from leverwatch.worker import Worker

ENDS = {"counter": "_total", "info": "_info"}


def receiving(room: EngineRoom) -> Receiving:
    """Ways in with a reader of Kafka, which read nothing."""
    door = Door(room.spool, lambda: 1, room.loader.note, reference_check, waiting=room.loader.waiting)
    kafka: Any = SimpleNamespace(lags={}, counts={}, warnings={})
    return Receiving(door, SimpleNamespace(warnings={}), kafka=kafka)  # type: ignore[arg-type]  # what numbers read of them


def faces(folder: Path) -> dict[str, list[Family]]:
    """The families of each process. A server on a lake has two more."""
    receiver = Receiver(name="pager", url="http://127.0.0.1:9/", secret="whsec_" + "A" * 44)
    room = EngineRoom(folder, Config(receivers=(receiver,)), clock=lambda: NOW)
    try:
        elsewhere_rooms.fill(room)
        ways, couriers = receiving(room), SimpleNamespace()
        worker = Worker(room, couriers)  # type: ignore[arg-type]  # its thread is never started
        serve = [*ServedNumbers(room, worker, Refused(), ways).families(), *lake_families(room.store, NOW)]
        sink: Any = SimpleNamespace(stored=Stored(), problem="", is_writing=True, waiting_bytes=0)
        collect = list(collect_app.families(sink, Refused(), ways, Observer()))
    finally:
        room.close()
    return {"serve": serve, "collect": collect, "work": list(work_app.families(Observer()))}


def names(found: dict[str, list[Family]]) -> Iterator[tuple[str, Family]]:
    """The name under which each family is asked for."""
    return ((family.name + ENDS.get(family.type, ""), family) for families in found.values() for family in families)


def labels(family: Family) -> tuple[str, ...]:
    """The labels that its samples have."""
    declared: Any = getattr(family, "_labelnames", None)
    return tuple(declared or (family.samples[0].labels if family.samples else ()))


def table(found: dict[str, list[Family]]) -> str:
    """Markdown: one row a metric, in the order of their names."""
    of: dict[str, list[str]] = {}
    every = dict(names(found))
    for process, families in found.items():
        for name, _ in names({process: families}):
            of.setdefault(name, []).append(process)
    lines = ["| metric | kind | labels | of | what it says |", "|---|---|---|---|---|"]
    for name, family in sorted(every.items()):
        shown = ", ".join(f"`{label}`" for label in labels(family))
        says = family.documentation.replace("|", "\\|")
        lines.append(f"| `{name}` | {family.type} | {shown} | {', '.join(dict.fromkeys(of[name]))} | {says} |")
    return "\n".join(lines) + "\n"
