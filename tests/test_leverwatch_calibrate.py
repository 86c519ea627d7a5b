"""`leverwatch calibrate`: recommends, keeps what it is told to keep, and says what is missing; over HTTP the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import polars as pl
import pytest
from fastapi import FastAPI
from lever_cells_rows import BLOCK, START, put

from leverwatch import calibration_api
from leverwatch.cli.main import main
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from leverwatch.lever_calibration import calibrate
from leverwatch.local import Local
from pipeline import calibrating_store, deploys
from pipeline.inference import block_length, scale
from queries.report import ReportError
from queries.store import Store

SEGMENT = '{"model":"m"}'
NOW = datetime(2026, 12, 5, tzinfo=UTC)


def rows(blocks: int, replicas: int, lever: str = "speculation", arm: str = "treated") -> list[dict[str, object]]:
    """An arm's cells, by replica: replicas alike, requests of about 20 ms a token."""
    rng, made = np.random.default_rng(2), []
    for number in range(blocks):
        common = rng.normal(0, 0.1)
        for replica in range(replicas):
            same = {"segment": SEGMENT, "lever": lever, "arm": arm, "replica": f"r{replica}", "block_started_at": START + number * BLOCK}
            n, mean = 100, 0.02 * np.exp(common) * (1 + rng.normal(0, 0.03))
            sums = {"n": n, "num": mean * 100 * n, "den": 100.0 * n, "num_sq": 1.1 * n * (mean * 100) ** 2, "den_sq": 1e4 * n}
            made.append({**same, "metric": "tpot_s", **sums, "num_den": 1e4 * mean * n})
            made.append({**same, "metric": "requests", "n": n, **dict.fromkeys(("num", "den", "num_sq", "den_sq", "num_den"), 0.0)})
    return made


@pytest.fixture(autouse=True)
def _few_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_length, "MULTIPLES", (6,))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data")
    held = Store(path)
    few = rows(30, 3, "prefix_caching", "control")
    put(held, rows(580, 4) + few)
    held.close()
    return path


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    opened = Store(folder)
    yield opened
    with opened.write() as transaction:
        transaction.execute("delete from calibrations")
    opened.close()


def test_it_recommends_and_keeps_nothing_by_itself(store: Store) -> None:
    found = calibrate(store, "speculation", "7d", 2, NOW)
    row = found.filter(metric="tpot_s", blocks_together=6).to_dicts()[0]
    assert (row["block_s"], row["in_use"], row["missing"]) == (1800, scale.PHI, None)
    assert (row["splits"], row["replicas"], row["segments"], row["arm"]) == (2, 4, 1, "treated")
    assert (row["since"], row["until"]) == (START, START + 580 * BLOCK)
    assert row["phi"] is not None
    assert store.rows("select * from calibrations") == []


def test_what_is_kept_widens_evidence_from_the_next_block_on_and_replaces_what_was(store: Store) -> None:
    for phi in (1.05, 1.25):
        told = pl.DataFrame([{**calibrate(store, "speculation", "7d", 2, NOW).to_dicts()[0], "phi": phi}])
        assert calibrating_store.keep(store, told.cast(calibrating_store.SCHEMA), NOW) == 1
    tuning, _ = deploys.tuned(store, [START + 580 * BLOCK])
    [key] = tuning.phis
    assert tuning.phis[key] == 1.25
    assert calibrate(store, "speculation", "7d", 2, NOW)["in_use"].max() == 1.25


def test_a_lever_with_too_little_is_told_apart_from_one_that_can_be_calibrated(store: Store) -> None:
    found = calibrate(store, None, None, 2, NOW)
    missing = dict(found.filter(pl.col("missing").is_not_null()).select("lever", "missing").iter_rows())
    assert missing == {"prefix_caching": "3 replicas in control, 4 are needed; 0.1 days with requests in control, 2 are needed"}
    assert found.filter(pl.col("missing").is_null())["lever"].unique().to_list() == ["speculation"]


@pytest.mark.parametrize(("asked", "said"), [(("speculatin", "7d", 2), "unknown"), ((None, "7w", 2), "7d"), ((None, "7d", 0), "1 to 500")])
def test_what_cannot_be_asked_is_refused(store: Store, asked: tuple[Any, ...], said: str) -> None:
    with pytest.raises(ReportError, match=said):
        calibrate(store, *asked, NOW)


def test_the_command_prints_a_table_and_keeps_what_it_is_told_to(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["calibrate", "--data", str(folder), "--lever", "speculation", "--splits", "2"]
    assert main(asked) == 0
    printed = capsys.readouterr()
    assert "at 1.05" in printed.out
    assert "nothing was kept: --apply" in printed.err
    assert main([*asked, "--apply", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    with Local.open(folder) as connection:
        assert len(connection.sql("select * from calibrations")) == len(told)


def test_too_little_is_status_3_and_says_what_is_missing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--data", str(folder), "--lever", "prefix_caching"]) == 3
    assert "prefix_caching: cannot tell: 3 replicas in control, 4 are needed" in capsys.readouterr().err
    assert main(["calibrate", "--data", str(folder), "--lever", "cache_affinity"]) == 3
    assert "no cells of cache_affinity" in capsys.readouterr().err


def test_over_http_a_question_keeps_nothing_and_a_post_does(folder: Path) -> None:
    room = EngineRoom(folder, Config())
    application = FastAPI()
    application.include_router(calibration_api.router(room))

    async def ask(method: str, lever: str) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://there") as client:
            return await client.request(method, "/api/calibrations", params={"lever": lever, "splits": 2})

    try:
        with room.store.write() as transaction:
            transaction.execute("delete from calibrations")
        asked = asyncio.run(ask("GET", "speculation")).json()
        assert {row["lever"] for row in asked} == {"speculation"}
        assert room.store.rows("select * from calibrations") == []
        assert asyncio.run(ask("POST", "speculation")).json()[0]["phi"] == asked[0]["phi"]
        assert len(room.store.rows("select * from calibrations")) == len(asked)
        refused = asyncio.run(ask("GET", "nope"))
        assert (refused.status_code, "unknown" in refused.json()["error"]["message"]) == (400, True)
    finally:
        room.close()
