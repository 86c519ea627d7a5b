"""Offsets stand in the commits that hold the rows: whatever dies between two commits, each table has each row once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from collectors_bodies import body, span, too_deep
from collectors_metrics import gauge, metrics, point

from collectors.deployed import Deployed
from collectors.kafka_lake import KafkaLake
from collectors.kafka_progress import KNOWN, STORED, Answer, Arrived, Place
from collectors.lake_batch import LakeReader
from collectors.lake_sink import LEDGER, Pace
from queries.lake import Lake
from queries.lake_errors import LakeError

SPANS, OTHERS, SAMPLES = Place("spans", 0), Place("spans", 1), Place("samples", 0)
LEVERS = {"leverwatch__lever__speculation": "eagle", "service__instance__id": "r0"}
AT_ONCE = Pace(interval_s=0.001)


class Failing:
    """A lake whose commits fail from a table on."""

    def __init__(self, lake: Lake, table: str) -> None:
        self._lake, self._table, self.mark = lake, table, lake.mark

    def append(self, table: str, rows: pa.Table, marks: Mapping[str, int]) -> int:
        if table == self._table:
            msg = "the object store is away"
            raise LakeError(msg)
        return self._lake.append(table, rows, marks)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(str(tmp_path / "lake"))


def store(lake: Any, kept: list[tuple[int, str]] | None = None) -> KafkaLake:
    kept = [] if kept is None else kept
    return KafkaLake(lake, LakeReader(Deployed()), "g", "otlp_proto", lambda one, why: kept.append((one.offset, why)), AT_ONCE)


def take(taker: KafkaLake, *messages: Arrived) -> list[Answer]:
    return asyncio.run(taker.take(messages))


def export(offset: int, place: Place = SPANS) -> Arrived:
    return Arrived(place, offset, "traces", body(span(100 * place.partition + offset + 1), **LEVERS))


def counted(lake: Lake) -> dict[str, int]:
    tables = {table: lake.read(table).num_rows for table in ("spans", "lever_settings", "samples")}
    return tables | {"stored": pa.compute.sum(lake.read(LEDGER)["stored"]).as_py()}


def test_messages_of_several_partitions_are_one_commit_a_table_with_their_offsets(lake: Lake) -> None:
    sample = Arrived(SAMPLES, 7, "metrics", metrics(gauge("g", point(1.0))).SerializeToString())
    assert take(store(lake), export(0), export(1), export(5, OTHERS), sample) == [STORED] * 4
    assert counted(lake) == {"spans": 3, "lever_settings": 1, "samples": 1, "stored": 4}
    assert [lake.mark(LEDGER, f"kafka:g:{name}") for name in ("spans/0", "spans/1", "samples/0")] == [2, 6, 8]
    assert lake.mark("spans", "kafka:g:spans/0") == 2
    assert {row["sender"] for row in lake.read(LEDGER).to_pylist()} == {"kafka:spans/0", "kafka:spans/1", "kafka:samples/0"}


@pytest.mark.parametrize("table", ["spans", "lever_settings", LEDGER])
def test_a_crash_between_two_commits_leaves_each_row_once_after_the_next_start(lake: Lake, table: str) -> None:
    first = store(Failing(lake, table))
    said = take(first, export(0), export(1))
    assert [answer.retry_after_s > 0 for answer in said] == [True, True]
    assert take(store(lake), export(0), export(1), export(2)) == [STORED] * 3
    assert counted(lake) == {"spans": 3, "lever_settings": 1, "samples": 0, "stored": 3}
    assert take(store(lake), export(1), export(2), export(3)) == [KNOWN, KNOWN, STORED]
    assert counted(lake)["spans"] == 4


def test_a_member_that_lost_its_partition_stores_nothing_that_its_successor_has(lake: Lake) -> None:
    old, new = store(lake), store(lake)
    assert take(old, export(0)) == [STORED]
    assert take(new, export(1), export(2)) == [STORED] * 2
    assert take(old, export(1), export(2))[0].retry_after_s > 0
    assert take(old, export(1), export(2)) == [KNOWN] * 2
    assert counted(lake)["spans"] == 3


def test_what_cannot_be_taken_is_passed_with_its_reason_and_the_rest_is_stored(lake: Lake) -> None:
    kept: list[tuple[int, str]] = []
    odd = [Arrived(SPANS, 1, "traces", b"\xff" * 5), Arrived(SPANS, 2, "traces", None), Arrived(SPANS, 3, "traces", too_deep())]
    said = take(store(lake, kept), export(0), *odd, export(4))
    assert [answer.outcome for answer in said] == ["taken", "set_aside", "set_aside", "set_aside", "taken"]
    assert [offset for offset, _ in kept] == [1, 2, 3]
    assert (counted(lake)["spans"], lake.mark(LEDGER, "kafka:g:spans/0")) == (2, 5)
    reasons = {reason for row in lake.read(LEDGER).to_pylist() for reason, _ in row["reasons"]}
    assert reasons == {"body is not a sound ExportTraceServiceRequest", "message without a body"}


def test_a_body_that_breaks_reading_is_found_and_passed_alone(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    read, kept = LakeReader.read, []

    def breaks(self: LakeReader, records: list[Any], *more: Any) -> Any:
        if any(b"\x00broken" in record.body for record in records):
            json.loads("[")
        return read(self, records, *more)

    monkeypatch.setattr(LakeReader, "read", breaks)
    bad = Arrived(SPANS, 1, "traces", body(span(9, name="\x00broken")))
    said = take(store(lake, kept), export(0), bad, export(2))
    assert [answer.outcome for answer in said] == ["taken", "set_aside", "taken"]
    assert counted(lake)["spans"] == 2
    assert kept[0][1].startswith("body cannot be loaded: JSONDecodeError")
