"""What was acknowledged and is not loaded yet is pending, by sender and signal, also after a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from collectors_bodies import body, span
from collectors_metrics import gauge, metrics, point
from conftest import RECORDINGS
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from collectors.decode import check
from collectors.door import Door
from collectors.evaluations import EVENT
from collectors.load import Loader
from collectors.recorded import Body, bodies
from collectors.spool import Spool
from collectors.waiting import Waiting
from queries.store import Store

NOW = 1_700_000_000_000_000_000
NAMES = sorted(path.name for path in RECORDINGS.glob("*/"))


def test_items_told_as_loaded_before_they_were_told_as_taken_are_nobodys() -> None:
    waiting = Waiting()
    waiting.add("s", "traces", -3)
    assert waiting.counts() == {}
    waiting.add("s", "traces", 3)
    waiting.add("s", "metrics", 2)
    assert waiting.counts() == {("s", "metrics"): 2}


def test_items_are_pending_from_their_acknowledgement_until_they_are_loaded_and_over_a_restart(tmp_path: Path) -> None:
    store = Store(tmp_path)
    loader = Loader(store)
    spool = Spool(tmp_path / "spool", loader.position())
    door = Door(spool, lambda: NOW, loader.note, check, waiting=loader.waiting)
    asyncio.run(door.take("traces", "a", body(span(1), span(2))))
    asyncio.run(door.take("metrics", "b", metrics(gauge("g", point(1.0)), gauge("h", point(1.0))).SerializeToString()))
    asyncio.run(door.take("traces", "a", body(span(3))))
    assert loader.waiting.counts() == {("a", "traces"): 3, ("b", "metrics"): 2}
    spool.close()

    again = Loader(store)
    spool = Spool(tmp_path / "spool", again.position())
    again.count_waiting(spool)
    assert again.waiting.counts() == {("a", "traces"): 3, ("b", "metrics"): 2}
    again.load_next(spool)
    assert again.waiting.counts() == {}
    spool.close()
    store.close()


def pending(folder: Path, *taken: tuple[str, bytes]) -> tuple[set[str], dict[tuple[str, str], int]]:
    """The signals that were pending once all was taken, and what is pending once all is loaded."""
    store = Store(folder)
    loader = Loader(store)
    spool = Spool(folder / "spool", loader.position(), limit_backlog_bytes=1 << 40)
    door = Door(spool, lambda: NOW, loader.note, check, waiting=loader.waiting)
    for signal, content in taken:
        asyncio.run(door.take(signal, "a", content))
    waited = {signal for _, signal in loader.waiting.counts()}
    while loader.load_next(spool):
        pass
    spool.close()
    store.close()
    return waited, loader.waiting.counts()


def evaluation_log() -> bytes:
    """A record that is kept, one that is not, and one of a request trace."""
    request = ExportLogsServiceRequest()
    scopes = request.resource_logs.add().scope_logs
    records = scopes.add().log_records
    records.add(time_unix_nano=NOW, event_name=EVENT).attributes.add(key="gen_ai.evaluation.score.value").value.double_value = 0.5
    records.add(time_unix_nano=NOW)
    return request.SerializeToString()


@pytest.mark.parametrize(
    ("signal", "content"),
    [
        ("traces", body(span(1))),
        ("metrics", metrics(gauge("g", point(1.0))).SerializeToString()),
        ("logs", evaluation_log()),
        ("evaluations", b'[{"suite": "s", "score": 1}, {"suite": "s", "score": 1}]'),
        ("requests", b'[{"request_id": "a", "started_at": "2026-11-29T12:00:00Z"}, {"request_id": "b"}]'),
        ("scrapes", b'{"instance": "h:80"}\na 1\nb 2\n'),
    ],
    ids=["traces", "metrics", "logs", "evaluations", "requests", "scrapes"],
)
def test_nothing_of_a_signal_is_pending_once_it_is_loaded(tmp_path: Path, signal: str, content: bytes) -> None:
    assert pending(tmp_path, (signal, content), (signal, content)) == ({signal}, {})


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_a_recording_is_pending_once_it_is_loaded(tmp_path: Path, recordings: Path, name: str) -> None:
    files = [path for path in sorted((recordings / name).rglob("*")) if path.is_file() and path.name != "meta.json"]
    found = [(item.signal, item.content) for path in files for item in bodies(path) if isinstance(item, Body)]
    waited, left = pending(tmp_path, *found)
    assert waited <= {signal for signal, _ in found}
    assert left == {}
