"""What the guard found, in the store: kept as one row while it goes on, shown by the doctor, said by the report and on the page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from guard_rows import T0, WINDOW, requests, samples, series

from dashboards import doubts
from leverwatch import doctor
from leverwatch.cli import doubted
from leverwatch.cli.main import main
from leverwatch.config import Config
from leverwatch.doctor_text import text
from leverwatch.engine_room import EngineRoom
from leverwatch.loading import Here, put_files
from leverwatch.local import Local
from pipeline.guard import Checked, checked, record

NOW = datetime(2026, 3, 5, tzinfo=UTC)
AGAIN = [series("prompt_tokens_total", 1e6), series("cache_queried_tokens_total", 2e6), series("cached_tokens_total", 9e5)]


@pytest.fixture
def room(tmp_path: Path) -> Iterator[EngineRoom]:
    opened = EngineRoom(tmp_path / "data", Config())
    yield opened
    opened.close()


def found(replica: str = "r1", after: timedelta = timedelta(0)) -> Checked:
    rows = requests([{"prompt_tokens": 1024, "cached_tokens": 400, "replica": replica, "provenance": {"cached_tokens": "counter"}}] * 30)
    told = samples([*AGAIN, series("preemptions_total", 50)], replica)
    return checked(rows, told.with_columns(pl.col("observed_at") + after))


def recorded(room: EngineRoom, *some: Checked) -> list[dict[str, Any]]:
    for one in some:
        with room.store.write() as transaction:
            record(transaction, one, NOW)
    return room.store.rows("select replica, trap, since, until, n, suspected_at from suspicions order by replica, since")


def test_a_suspicion_that_goes_on_is_one_row(room: EngineRoom) -> None:
    rows = recorded(room, *(found(after=WINDOW * step) for step in range(4)))
    assert [(row["since"], row["until"], row["n"], row["suspected_at"]) for row in rows] == [(T0, T0 + 4 * WINDOW, 120, NOW)]


def test_one_that_comes_back_later_and_one_of_another_replica_are_rows_of_their_own(room: EngineRoom) -> None:
    rows = recorded(room, found(), found(after=timedelta(hours=2)), found("r2"))
    assert [(row["replica"], row["since"] - T0) for row in rows] == [
        ("r1", timedelta(0)), ("r1", timedelta(hours=2)), ("r2", timedelta(0)),
    ]  # fmt: skip


def test_what_was_set_aside_is_kept_with_the_trap_the_issue_and_the_replica(room: EngineRoom) -> None:
    recorded(room, found())
    kept = room.store.rows('select "column", value, trap, upstream, replica, count(*) as n from quarantine group by all')
    assert kept == [
        {"column": "cached_tokens", "value": "400", "trap": "hits_of_preempted", "upstream": "vllm#25780", "replica": "r1", "n": 30}
    ]


def load(room: EngineRoom, folder: Path, rows: list[dict[str, Any]]) -> None:
    (folder / "rows.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    assert list(put_files(Here(Local(room), "load:x"), [folder / "rows.jsonl"])) == []
    room.drain()


def row(number: int, **said: Any) -> dict[str, Any]:
    at = (T0 + timedelta(seconds=number)).isoformat()
    usual = {"engine": "sglang", "model": "m", "replica": "r1", "prompt_tokens": 100, "output_tokens": 11, "outcome": "ok"}
    return usual | {"request_id": f"r-{number}", "started_at": at, "ttft_s": 0.2, "e2e_s": 1.2} | said


FAST = {"kv_transfer_bytes": 8_000_000_000, "kv_transfer_s": 0.05, "link_peak_bytes_per_s": 50e9}


def doubt(room: EngineRoom, folder: Path) -> EngineRoom:
    """Five requests, of which two transferred faster than their link, and a replica whose counter is suspect without shared-out values."""
    load(room, folder, [row(number, **(FAST if number < 2 else {})) for number in range(5)])
    recorded(room, found()._replace(quarantine=pl.DataFrame()))
    return room


@pytest.fixture
def doubtful(room: EngineRoom, tmp_path: Path) -> EngineRoom:
    return doubt(room, tmp_path)


def test_the_doctor_names_trap_issue_address_and_since_when(doubtful: EngineRoom) -> None:
    told = doctor.diagnose(doubtful)
    by_column = {one["column"]: one for one in told["quarantine"]}
    assert set(by_column) == {"kv_transfer_bytes", "kv_transfer_s"}
    assert by_column["kv_transfer_s"] | {"reason": ""} == {
        "column": "kv_transfer_s", "reason": "", "values": 2, "trap": "transfer_above_link", "upstream": "sglang#31877",
        "since": "2026-03-04T12:00:00Z", "until": "2026-03-04T12:00:01Z", "link": "https://github.com/sgl-project/sglang/issues/31877",
    }  # fmt: skip
    (suspicion,) = told["suspicions"]
    assert (suspicion["replica"], suspicion["trap"], suspicion["link"]) == (
        "r1", "hits_of_preempted", "https://github.com/vllm-project/vllm/issues/25780",
    )  # fmt: skip
    flat = " ".join(text(told).split())
    assert "(sglang#31877); since 2026-03-04T12:00:00Z, https://github.com/sgl-project/sglang/issues/31877" in flat
    assert "r1 cached_tokens: 45.0 % of 2000000 looked-up tokens hit" in flat
    assert "hits_of_preempted (vllm#25780); shared-out values set aside; since 2026-03-04T12:00:00Z" in flat


def test_a_report_says_on_standard_error_what_of_its_period_was_set_aside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    doubt(EngineRoom(tmp_path / "data", Config()), tmp_path).close()
    asked = ["report", "--data", str(tmp_path / "data"), "--metrics", "ttft_s", "--format", "csv", "--since", "2026-03-04T11:00Z"]
    assert main(asked) == 0
    said = capsys.readouterr()
    assert (
        "leverwatch: 2 values of kv_transfer_s in this period were set aside as impossible: transfer_above_link (sglang#31877)" in said.err
    )
    assert "set aside" not in said.out
    assert main([*asked[:-1], "2026-03-04T13:00Z"]) == 0
    assert "set aside" not in capsys.readouterr().err


def test_of_many_traps_the_report_says_the_first_and_how_many_more(room: EngineRoom) -> None:
    taken = found().quarantine.head(1)
    with room.store.write() as transaction:
        for number in range(9):
            transaction.insert("quarantine", taken.with_columns(pl.lit(f"column_{number}").alias("column")))
    told = doubted.told(Local(room), None, None, NOW)
    assert len(told) == 6
    assert told[-1] == "and 4 more such columns and traps: `leverwatch doctor` has them"


def test_the_page_says_it_in_a_line_and_nothing_where_nothing_was(doubtful: EngineRoom) -> None:
    inside = doubts.told(doubtful, T0 - WINDOW, T0 + WINDOW)
    assert inside.startswith("Values set aside or suspect in this period: 2 of kv_transfer_bytes, transfer_above_link (sglang#31877); 2 of")
    assert doubts.told(doubtful, T0 - 2 * WINDOW, T0 - WINDOW) == ""


@pytest.mark.parametrize("preempts", [True, False])
def test_settling_shares_no_hits_out_of_a_counter_that_counts_the_preempted_again(room: EngineRoom, tmp_path: Path, preempts: bool) -> None:
    """vllm#25780 on its whole way: requests without a word of the cache, and a replica's counters beside them."""
    counters = [series("prompt_tokens_total", 300_000), series("cached_tokens_total", 150_000)]
    counters += [
        series("cache_queried_tokens_total", 450_000 if preempts else 300_000),
        series("preemptions_total", 100 if preempts else 0),
    ]
    with room.store.write() as transaction:
        transaction.insert("samples_hot", samples(counters))
    mute = {"engine": "vllm", "prompt_tokens": 1000}
    load(room, tmp_path, [row(number, **mute) for number in range(300)] + [row(3000, **mute)])
    asked = (
        "select count(*) as n, count(cached_tokens) as known, count(*) filter ('trap:hits_of_preempted' in flags) as trapped from requests"
    )
    (told,) = room.store.rows(f"{asked} where started_at < timestamptz '2026-03-04 12:05:00+00'")
    suspected = room.store.rows("select trap, upstream from suspicions")
    if preempts:
        assert (told["known"], told["trapped"] > 250, suspected) == (0, True, [{"trap": "hits_of_preempted", "upstream": "vllm#25780"}])
    else:
        assert (told["known"] > 250, told["trapped"], suspected) == (True, 0, [])
