"""What a process that starts anew knows of the spans before it: the newest by name, so that a late leg makes no second request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from collectors_bodies import START, attribute, body, span

from collectors import stored_ids
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from queries.store import Store

MINUTE = 60_000_000_000
HALF_AN_HOUR_ON = START + 33 * MINUTE


@pytest.fixture
def folder(tmp_path: Path, _batches: None) -> Iterator[Path]:
    """A folder that holds three requests, of which the last began 33 minutes after the first."""
    opened = EngineRoom(tmp_path, Config())
    for number, began in ((1, START), (2, START + 20 * MINUTE), (3, HALF_AN_HOUR_ON)):
        put(opened, engine(number, began))
    opened.close()
    yield tmp_path


def engine(number: int, began: int) -> bytes:
    return body(span(number, start_time_unix_nano=began, end_time_unix_nano=began + MINUTE))


def tapped(number: int, began: int) -> bytes:
    """What a tap saw of the request of that number, under it and later."""
    ids = {"trace_id": number.to_bytes(16, "big"), "parent_span_id": number.to_bytes(8, "big")}
    times = {"start_time_unix_nano": began, "end_time_unix_nano": began + 1}
    told = [attribute("leverwatch.body.cached_tokens", 64)]
    return body(span(1000 + number, name="response_body", attributes=told, **ids, **times), scope="leverwatch.response_tap")


def put(room: EngineRoom, one: bytes) -> None:
    room.spool.append("traces", "s", HALF_AN_HOUR_ON, one).result(10)
    room.drain()


@pytest.mark.parametrize(("number", "cached"), [(1, None), (2, 64)], ids=["more than half an hour before", "within half an hour"])
def test_a_leg_that_begins_after_a_restart_makes_no_second_request(folder: Path, number: int, cached: int | None) -> None:
    opened = EngineRoom(folder, Config())
    put(opened, tapped(number, HALF_AN_HOUR_ON + MINUTE))
    found = opened.store.rows("select cached_tokens from requests where trace_id = $trace", {"trace": f"{number:032x}"})
    opened.close()
    assert found == [{"cached_tokens": cached}]


def test_of_more_spans_than_are_remembered_the_newest_are_known_by_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [f"{number:032x}" for number in (1, 2, 3)]
    traces, _ = stored_ids._hashes(pa.array(ids), pa.array([one[:16] for one in ids]))
    later, known = np.full(3, HALF_AN_HOUR_ON + 5 * MINUTE), {}
    for limit in (1, 2, 3):
        monkeypatch.setattr(stored_ids, "LIMIT_ROWS", limit)
        store = Store(folder)
        known[limit] = stored_ids.seen_before(store)[1].maybe(later, traces).tolist()
        store.close()
    assert known == {1: [False, False, True], 2: [False, True, True], 3: [True, True, True]}
