"""What is acknowledged by a collector is in the lake, counted in its ledger, and nothing that is not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
from collectors_bodies import START, attribute, body, span, too_deep
from collectors_metrics import gauge, metrics, point

from collectors import decode
from collectors.deployed import Deployed
from collectors.door import BusyError, Door
from collectors.entry import UnsoundBodyError
from collectors.lake_batch import LakeReader
from collectors.lake_sink import LakeSink, Pace
from collectors.ledger import Note
from collectors.load import Loader
from collectors.sink import SinkFullError
from collectors.spool import Spool
from queries.lake import Lake
from queries.lake_tables import RAW, TABLES
from queries.store import Store

SCORE = {"suite": "s", "kind": "product", "score": 0.5, "better": "higher", "evaluated_at": "2023-11-14T22:13:20Z"}
IMPORTED = {"request_id": "a", "started_at": "2023-11-14T22:13:20Z", "model": "m", "output_tokens": 3}
LEVERS = {"leverwatch__lever__speculation": "eagle", "service__instance__id": "r0"}
AT_ONCE = Pace(interval_s=0.001)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(str(tmp_path / "lake"))


@pytest.fixture
def sink(lake: Lake) -> Iterator[LakeSink]:
    made = LakeSink(lake, LakeReader(Deployed()), AT_ONCE)
    yield made
    made.close()


def door(sink: LakeSink) -> Door:
    return Door(sink, lambda: START, sink.note, decode.check, waiting=None)


def ledger(lake: Lake) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Received, stored and rejected by sender and signal."""
    found: dict[tuple[str, str], tuple[int, int, int]] = {}
    for row in lake.read("ingest_entries").to_pylist():
        sums = found.get((row["sender"], row["signal"]), (0, 0, 0))
        found[row["sender"], row["signal"]] = (sums[0] + row["received"], sums[1] + row["stored"], sums[2] + row["rejected"])
    return found


def bodies() -> list[tuple[str, bytes]]:
    """One body of each signal."""
    return [
        ("traces", body(span(1), span(2), **LEVERS)),
        ("metrics", metrics(gauge("g", point(1.0)), gauge("h", point(2.0))).SerializeToString()),
        ("evaluations", json.dumps(SCORE).encode()),
        ("requests", json.dumps([IMPORTED]).encode()),
    ]


def test_an_acknowledged_body_of_every_signal_is_in_the_lake_and_its_ledger(lake: Lake, sink: LakeSink) -> None:
    for signal, content in bodies():
        asyncio.run(door(sink).take(signal, "s", content))
    assert {table: lake.read(table).num_rows for table in RAW[:5]} == {
        "spans": 2, "samples": 2, "evaluations": 1, "imported_requests": 1, "lever_settings": 1,
    }  # fmt: skip
    assert {signal: sums for (_, signal), sums in ledger(lake).items()} == {
        "traces": (2, 2, 0), "metrics": (2, 2, 0), "evaluations": (1, 1, 0), "requests": (1, 1, 0),
    }  # fmt: skip


def test_a_lake_holds_the_rows_that_the_embedded_store_makes_of_the_same_bodies(tmp_path: Path, lake: Lake, sink: LakeSink) -> None:
    store = Store(tmp_path / "embedded")
    loader = Loader(store)
    spool = Spool(tmp_path / "spool", loader.position())
    for signal, content in bodies():
        spool.append(signal, "s", START, content).result(10)
        sink.append(signal, "s", START, content).result(10)
    loader.load_next(spool)
    for table in RAW:
        relation, keys = TABLES[table].relation, TABLES[table].key or ("signal",)
        embedded = sorted(store.rows(f"select * from {relation}"), key=lambda row: str([row[key] for key in keys]))
        held = sorted(lake.read(table).to_pylist(maps_as_pydicts="strict"), key=lambda row: str([row[key] for key in keys]))
        for row in (*held, *embedded):
            row.pop("joins_by_request_id", None)  # a mark that a file has, and hot rows have not
        assert [_plain(row) for row in held] == [_plain(row) for row in embedded]
    spool.close()
    loader.close()
    store.close()


def _plain(value: object) -> object:
    """A value with maps, which come as dicts or as lists of entries, in one form."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict) and value[0].keys() == {"key", "value"}:
        return {one["key"]: _plain(one["value"]) for one in value}
    return [_plain(one) for one in value] or {} if isinstance(value, list) else value


def test_bodies_that_wait_together_are_one_commit(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    now_s = [0.0]
    sink = LakeSink(lake, LakeReader(Deployed()), Pace(interval_s=60.0), lambda: now_s[0])
    sink.append("traces", "s", START, body(span(100))).result(10)  # nothing was committed for long: at once
    first = lake.version("spans")
    waiting: list[Future[None]] = [sink.append("traces", "s", START, body(span(number))) for number in range(1, 20)]
    assert not any(one.done() for one in waiting)
    sink.close()
    assert all(one.result(0) is None for one in waiting)
    assert (lake.version("spans"), lake.read("spans").num_rows) == (first + 1, 20)


def test_a_full_commit_does_not_wait_for_its_time(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    content = body(span(1))
    sink = LakeSink(lake, LakeReader(Deployed()), Pace(interval_s=3600.0, commit_bytes=2 * len(content)))
    sink.append("traces", "s", START, body(span(100))).result(10)
    for done in [sink.append("traces", "s", START, content), sink.append("traces", "s", START, content)]:
        assert done.result(10) is None
    assert lake.read("spans").num_rows == 3
    sink.close()


def test_more_than_may_wait_is_refused_for_later(tmp_path: Path) -> None:
    content = body(span(1))
    sink = LakeSink(Lake.open(str(tmp_path)), LakeReader(Deployed()), Pace(interval_s=3600.0, limit_waiting_bytes=len(content)))
    sink.append("traces", "s", START, body(span(100))).result(10)
    waits = sink.append("traces", "s", START, content)
    with pytest.raises(BusyError, match="bytes wait to be stored; the bound is"):
        asyncio.run(door(sink).take("traces", "s", content))
    sink.close()
    waits.result(0)
    with pytest.raises(SinkFullError, match="the collector is stopping"):
        sink.append("traces", "s", START, content)


def test_where_the_lake_cannot_be_written_nothing_is_acknowledged_and_the_body_may_come_again(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("", encoding="utf-8")
    lake = Lake.open(str(tmp_path / "lake"))
    sink = LakeSink(lake, LakeReader(Deployed()), AT_ONCE)
    content = body(span(1), **LEVERS)
    with pytest.raises(BusyError, match="the lake cannot be written"):
        asyncio.run(door(sink).take("traces", "s", content))
    assert "lake" in sink.problem
    (tmp_path / "lake").unlink()
    asyncio.run(door(sink).take("traces", "s", content))
    assert (sink.problem, lake.read("spans").num_rows) == ("", 1)
    assert lake.read("lever_settings")["setting"].to_pylist() == ["eagle"]  # said before in vain
    sink.close()


def test_a_body_that_no_row_can_be_made_of_is_refused_for_good_and_holds_up_no_other(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = LakeReader(Deployed())
    read, odd = reader.read, body(span(7))

    def failing(records: list, *rest: object) -> object:
        if any(record.body == odd for record in records):
            msg = "an odd one"
            raise ValueError(msg)
        return read(records, *rest)

    monkeypatch.setattr(reader, "read", failing)
    sink = LakeSink(lake, reader, Pace(interval_s=0.2))
    sink.append("traces", "s", START, body(span(100))).result(10)
    waiting = [sink.append("traces", "s", START, body(span(number))) for number in range(1, 12)]
    assert isinstance(waiting[6].exception(10), UnsoundBodyError)
    assert [number for number, one in enumerate(waiting) if one.exception(10) is not None] == [6]
    with pytest.raises(UnsoundBodyError, match="body cannot be loaded: ValueError: an odd one"):
        asyncio.run(door(sink).take("traces", "s", odd))
    sink.close()
    assert ledger(lake) == {("s", "traces"): (13, 11, 2)}


def test_spans_that_cannot_be_stored_are_counted_and_the_others_of_their_body_are_stored(lake: Lake, sink: LakeSink) -> None:
    asyncio.run(door(sink).take("traces", "s", body(span(1), span(2, span_id=b""))))
    sink.append("traces", "s", START, too_deep()).result(10)
    sink.note(Note("t", "metrics", START, "not sound"))
    asyncio.run(door(sink).take("traces", "s", body(span(3))))
    assert ledger(lake) == {("s", "traces"): (4, 2, 2), ("t", "metrics"): (1, 0, 1)}


def test_a_setting_is_stored_where_it_changes_not_with_every_batch(lake: Lake, sink: LakeSink) -> None:
    for number, setting in enumerate(("a", "a", "b", "b", "a")):
        export = body(span(number, attributes=[attribute("leverwatch.lever.speculation", setting)]), service__instance__id="r0")
        asyncio.run(door(sink).take("traces", "s", export))
    rows = sorted(lake.read("lever_settings").to_pylist(), key=lambda row: row["since"])
    assert [(row["replica"], row["lever"], row["setting"]) for row in rows] == [("r0", "speculation", one) for one in ("a", "b", "a")]
