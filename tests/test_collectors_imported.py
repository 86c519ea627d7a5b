"""Canonical requests as Parquet, CSV or JSON lines are stored once, reach `requests`, and get what follows from what they state."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collectors import imported
from collectors.deployed import Deployed
from collectors.identity import Hasher
from collectors.imported import ImportedError
from collectors.load import Loader
from collectors.recorded import Body, bodies
from collectors.spool import Spool
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from leverwatch.loading import Here, put_files
from leverwatch.local import Local
from queries.store import Store

STARTED = datetime(2026, 11, 29, 12, tzinfo=UTC)
ROW: dict[str, Any] = {
    "request_id": "r-1", "started_at": "2026-11-29T12:00:00Z", "engine": "vllm", "model": "m", "prompt_tokens": 1000, "cached_tokens": 600,
    "output_tokens": 11, "ttft_s": 0.5, "e2e_s": 1.5, "levers": {"speculation": "on"}, "arms": {"speculation": "treated"}, "outcome": "ok",
}  # fmt: skip


def as_parquet(folder: Path) -> Path:
    maps = pa.map_(pa.string(), pa.string())
    columns = {name: pa.array([value]) for name, value in ROW.items() if name not in ("levers", "arms", "started_at")}
    columns |= {name: pa.array([list(ROW[name].items())], maps) for name in ("levers", "arms")}
    columns["started_at"] = pa.array([STARTED])
    pq.write_table(pa.table(columns), folder / "file")
    return folder / "file"


def as_csv(folder: Path) -> Path:
    plain = ROW | {name: json.dumps(ROW[name]) for name in ("levers", "arms")} | {"started_at": "2026-11-29 12:00:00"}
    pl.DataFrame([plain]).write_csv(folder / "file")
    return folder / "file"


def as_lines(folder: Path) -> Path:
    (folder / "file").write_text(json.dumps(ROW | {"queue_s": None}) + "\n")
    return folder / "file"


FORMS = {"parquet": as_parquet, "csv": as_csv, "lines": as_lines}


@pytest.mark.parametrize("form", FORMS)
def test_a_request_of_each_form_becomes_the_same_row_with_what_follows_from_it(tmp_path: Path, form: str) -> None:
    path = FORMS[form](tmp_path)
    room = EngineRoom(tmp_path / "data", Config())
    for _ in range(2):
        assert list(put_files(Here(Local(room), "load:x"), [path])) == []
    room.drain()
    found = room.frame("select * from requests").to_dicts()
    assert len(found) == 1
    wanted = {
        "request_id": "r-1", "engine": "vllm", "model": "m", "started_at": STARTED, "ended_at": STARTED + timedelta(seconds=1.5),
        "prompt_tokens": 1000, "decode_s": 1.0, "tpot_s": 0.1, "input_bucket": "512-2047", "cache_class": "hit", "outcome": "ok",
        "queue_s": None,
    }  # fmt: skip
    assert {name: found[0][name] for name in wanted} == wanted
    arms = room.frame("select levers['speculation'] as lever, arms['speculation'] as arm from requests").row(0)
    ledger = room.store.rows(
        "select sum(received)::int as received, sum(stored)::int as stored, sum(duplicate)::int as twice from ingest_ledger"
    )
    assert (arms, ledger) == (("on", "treated"), [{"received": 2, "stored": 1, "twice": 1}])
    room.close()


def test_what_a_request_met_is_taken_as_it_is_stated(tmp_path: Path) -> None:
    met = {
        "kv_block_tokens": 16, "gpu_s": 0.5, "kv_link_s": 0.1, "evicted_tokens": 64, "gpu_memory_used_bytes": 10**10,
        "gpu_memory_free_bytes": 10**9, "collective_bus_bytes_per_s": 1e11, "communication_fraction": 0.2, "chunks": 9,
        "chunk_gap_p50_s": 0.01, "chunk_gap_p95_s": 0.02, "chunk_gap_p99_s": 0.03, "chunk_gap_max_s": 0.04, "stall_s": 0.0,
    }  # fmt: skip
    (tmp_path / "file").write_text(json.dumps(ROW | met))
    room = EngineRoom(tmp_path / "data", Config())
    assert list(put_files(Here(Local(room), "load:x"), [tmp_path / "file"])) == []
    room.drain()
    (found,) = room.frame("select * from requests").to_dicts()
    assert {name: found[name] for name in met} == met
    room.close()


def test_a_stated_bucket_is_kept_and_an_impossible_value_is_set_aside(tmp_path: Path) -> None:
    rows = [ROW | {"input_bucket": "mine"}, ROW | {"request_id": "r-2", "cached_tokens": 2000}]
    (tmp_path / "file").write_text("\n".join(json.dumps(row) for row in rows))
    room = EngineRoom(tmp_path / "data", Config())
    assert list(put_files(Here(Local(room), "load:x"), [tmp_path / "file"])) == []
    room.drain()
    found = room.frame("select input_bucket, cached_tokens, flags from requests order by request_id").rows()
    assert found == [("mine", 600, []), ("512-2047", None, ["quarantined", "trap:cached_above_prompt"])]
    room.close()


def test_rows_that_cannot_be_taken_are_named_and_the_others_come_out(tmp_path: Path) -> None:
    rows = [ROW, ROW | {"ttft_s": "soon"}, ROW | {"request_id": "r-2", "other": 1}, ROW | {"request_id": "r-3"}]
    path = tmp_path / "file"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    items = list(bodies(path))
    told = [str(item).removeprefix(f"{path}:") for item in items if not isinstance(item, Body)]
    assert told[0].startswith("2: Expected `float | null`, got `str` - at `$.ttft_s`")
    assert told[1].startswith("3: Object contains unknown field `other`")
    taken, wrong = imported.taken(next(item.content for item in items if isinstance(item, Body)))
    assert ([one.request_id for one in taken], wrong) == (["r-1", "r-3"], [])


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"started_at": "yesterday"}, "Invalid RFC3339"),
        ({"started_at": "1960-01-01T00:00:00Z"}, "a time from 1971 to 2199 is taken"),
        ({"e2e_s": float("inf")}, "e2e_s = inf is no number"),
        ({"prompt_tokens": -1}, "Expected `int` >= 0"),
        ({"outcome": "fine"}, "Invalid enum value 'fine'"),
        ({"trace_id": "XYZ"}, "32 hex digits in lower case are taken"),
        ({"levers": "{"}, "Input data was truncated"),
        ({"model": "x" * 5000}, "model is longer than 4096 characters"),
    ],
)
def test_a_row_that_cannot_be_taken_says_its_field(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ImportedError) as caught:
        imported.checked(ROW | fields)
    assert told in str(caught.value)


def test_ids_are_stored_as_hashes_where_that_is_asked_for(tmp_path: Path) -> None:
    store = Store(tmp_path)
    loader = Loader(store, deployed=Deployed(hasher=Hasher(b"0123456789abcdef", {"request_id": (), "tenant": ()})))
    spool = Spool(tmp_path / "spool", loader.position())
    spool.append("requests", "load:x", 1, msgspec.json.encode([ROW | {"tenant": "acme"}])).result(10)
    loader.load_next(spool)
    row = store.rows("select request_id, tenant, trace_id from imported_requests")[0]
    assert {len(value) for value in row.values()} == {32}
    plain = imported.with_trace_ids(imported.rows([imported.checked(ROW)], 0, "load:x", 1))["trace_id"].to_pylist()
    assert row["trace_id"] not in plain
    spool.close()
    store.close()


def test_a_broken_parquet_file_is_named(tmp_path: Path) -> None:
    path = as_parquet(tmp_path)
    path.write_bytes(path.read_bytes()[:-50])
    assert ["a broken table" in str(item) for item in bodies(path)] == [True]


def test_what_is_no_array_of_requests_is_refused_whole() -> None:
    for body in (b"{", b"{}", b"7"):
        with pytest.raises(ImportedError):
            imported.taken(body)
    assert imported.taken(msgspec.json.encode([7]))[1] == ["an object is taken, not a number"]
