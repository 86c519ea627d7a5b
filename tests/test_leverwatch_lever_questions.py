"""The holdout that would answer, and whether a lever may be widened, as they are asked for: the command, a folder, a server."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import numpy as np
import polars as pl
import pytest
from fastapi import FastAPI
from lever_cells_rows import BLOCK, LEVER, START, arm_rows, put

from leverwatch import lever_api, lever_holdout, lever_widening
from leverwatch.cli.main import main
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from leverwatch.lever_questions import hours
from leverwatch.local import Local
from leverwatch.remote import Remote
from pipeline.evidence_families import NO_GAIN, NULLS
from queries.report import ReportError
from queries.store import Store

BUSY, QUIET, ALONE = ({"model": name} for name in ("busy", "quiet", "alone"))
BLOCKS = 60


def block(number: int) -> list[dict[str, object]]:
    """A busy segment with a holdout of a tenth, a quiet one with half of it, and one that is treated as a whole."""
    rng = np.random.default_rng([7, number])
    level = rng.lognormal(0, 0.02)
    rows = arm_rows(rng, BUSY, "treated", number, 450, 0.02 * level, 0.3) + arm_rows(rng, BUSY, "control", number, 50, 0.025 * level, 0.3)
    rows += arm_rows(rng, QUIET, "treated", number, 8, 0.02 * level, 0.3) + arm_rows(rng, QUIET, "control", number, 8, 0.02 * level, 0.3)
    return rows + [row | {"replica": f"a{number % 5}"} for row in arm_rows(rng, ALONE, "treated", number, 200, 0.02 * level, 0.3)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data")
    store = Store(path)
    put(store, [row for number in range(BLOCKS) for row in block(number)])
    logs: list[float | None] = [None] * len(NULLS)
    logs[NO_GAIN] = 5.0
    common = {"lever": LEVER, "since": START, "until": START + BLOCKS * BLOCK, "arm_a": "treated", "blocks": 24, "n_a": 9, "n_b": 9}
    common |= {"method": "t", "basis": "control", "coverage": 1.0, "evidence_below": logs, "segment": '{"model":"busy"}'}
    with store.write() as transaction:
        transaction.insert("effects", pl.DataFrame([common | {"metric": name} for name in ("net_itl_s", "ttft_s")]))
    store.close()
    return path


@pytest.fixture
def room(folder: Path) -> Iterator[EngineRoom]:
    opened = EngineRoom(folder, Config())
    yield opened
    opened.close()


def by_model(frame: pl.DataFrame) -> dict[str, dict[str, object]]:
    return {json.loads(row["segment"]).get("model", "all"): row for row in frame.iter_rows(named=True)}


def test_the_smallest_holdout_is_told_for_each_segment_and_for_all_traffic(room: EngineRoom) -> None:
    found = by_model(lever_holdout.holdout(room.store, LEVER, change=0.1))
    assert set(found) == {"busy", "quiet", "alone", "all"}
    busy, alone = found["busy"], found["alone"]
    assert busy["requests_per_hour"] == pytest.approx(6000)
    assert busy["is_reached"]
    assert (busy["basis"], alone["basis"]) == ("control", "one_arm")
    assert 0 < busy["hours"] < busy["hours_p90"] <= 24  # type: ignore[operator]
    assert busy["share_now"] == pytest.approx(0.1)
    assert 0 < busy["change_now"] < 0.1  # type: ignore[operator]
    assert busy["requests"] == pytest.approx(6000 * busy["share"] * busy["hours"])  # type: ignore[operator]
    assert (alone["share_now"], alone["change_now"], alone["replicas"]) == (None, None, 5.0)
    assert alone["share"] == pytest.approx(0.4), "two of five replicas"
    assert found["all"]["requests_per_hour"] == pytest.approx(12 * 716)


def test_where_no_share_answers_in_time_it_says_what_lacks(room: EngineRoom) -> None:
    quiet = by_model(lever_holdout.holdout(room.store, LEVER, change=0.01, within_hours=6))["quiet"]
    assert not quiet["is_reached"]
    assert "no share finds 1.0 % within 6 h" in str(quiet["note"])
    eased = by_model(lever_holdout.holdout(room.store, LEVER, change=0.08, within_hours=6))["quiet"]
    assert "times the traffic" in str(eased["note"])


def test_by_a_key_its_groups_take_the_place_of_segments(room: EngineRoom) -> None:
    frame = lever_holdout.holdout(room.store, LEVER, by=["model"])
    assert frame["segment"].to_list() == ['{"model":"alone"}', '{"model":"busy"}', '{"model":"quiet"}', "{}"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"change": 0.0}, "change 0: a ratio"),
        ({"within_hours": 0}, "within 0 h: more than 0"),
        ({"metric": "queue_s"}, "taken: tpot_s"),
        ({"by": ["x"]}, "key 'x'"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused(room: EngineRoom, asked: dict[str, float], said: str) -> None:
    with pytest.raises(ReportError, match=said):
        lever_holdout.holdout(room.store, LEVER, **asked)  # type: ignore[arg-type]


def test_widening_says_what_is_missing_of_a_segment_with_control(room: EngineRoom) -> None:
    [row] = lever_widening.widening(room.store, LEVER).to_dicts()
    assert (row["segment"], row["may_widen"], row["since"]) == ('{"model":"busy"}', False, START)
    assert "5.0 h of a cycle of 168 h" in row["missing"]
    assert any("a guardrail's evidence" in one for one in row["missing"])
    assert 0.1 < row["gain_low"] < 0.2
    assert sum(row["blocks_by_load"]) == BLOCKS


def test_a_flip_begins_a_new_epoch(tmp_path: Path, folder: Path) -> None:
    shutil.copytree(folder, tmp_path / "data")
    store = Store(tmp_path / "data")
    flip = {
        "flip_id": "f",
        "policy": "p",
        "lever": LEVER,
        "segment": '{"model":"busy"}',
        "state_before": "on",
        "reason": "r",
        "notice": "{}",
    }
    flip |= {"state_after": "off_recommended", "decided_at": START + 50 * BLOCK}
    with store.write() as transaction:
        transaction.insert("flips", pl.DataFrame([flip]))
    [row] = lever_widening.widening(store, LEVER).to_dicts()
    store.close()
    assert (row["elapsed_h"], row["since"]) == (pytest.approx(10 / 12), START + 50 * BLOCK)


def test_a_new_version_of_the_engine_begins_a_new_epoch_on_its_model_alone(tmp_path: Path, folder: Path) -> None:
    shutil.copytree(folder, tmp_path / "data")
    store = Store(tmp_path / "data")
    deploy = {"engine": "vllm", "engine_version": "2", "is_change": True}
    changes = [deploy | {"model": "busy", "since": START + 40 * BLOCK}, deploy | {"model": "quiet", "since": START + 55 * BLOCK}]
    with store.write() as transaction:
        transaction.insert("deploys", pl.DataFrame(changes))
    [row] = lever_widening.widening(store, LEVER).to_dicts()
    store.close()
    assert row["since"] == START + 40 * BLOCK


@pytest.mark.parametrize("gain_on", [float("nan"), float("inf"), 1e308, -2.0])
def test_a_gain_that_is_no_ratio_is_refused(room: EngineRoom, gain_on: float) -> None:
    with pytest.raises(ReportError, match="a ratio from -1 to 1 is taken"):
        lever_widening.widening(room.store, LEVER, gain_on)


def test_of_segments_that_are_ready_only_those_of_the_very_block_are_told(room: EngineRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    until = START + BLOCK
    row = {"until": until, "may_widen": True, "elapsed_h": 170.0, "gain_low": 0.12, "peak_gain_low": 0.081}
    rows = [{"segment": "a"} | row, {"segment": "b"} | row | {"may_widen": False}, {"segment": "c"} | row | {"until": until + BLOCK}]
    monkeypatch.setattr(lever_widening, "widening", lambda *_, **__: pl.DataFrame(rows))
    told = {"a": "may get more traffic: pays by 12 % at least over 170 h, and by 8 % in the busiest blocks"}
    assert lever_widening.ready(room.store, LEVER, ["a", "b", "c"], until) == told


def test_only_the_segments_that_are_asked_for_are_looked_at(room: EngineRoom) -> None:
    assert lever_widening.widening(room.store, LEVER, segments=['{"model":"busy"}']).height == 1
    assert lever_widening.widening(room.store, LEVER, segments=["{}"]).is_empty()
    assert lever_widening.ready(room.store, LEVER, ["{}"], START) == {}


def test_a_split_that_is_off_and_control_that_may_not_decide_keep_from_widening(tmp_path: Path, folder: Path) -> None:
    shutil.copytree(folder, tmp_path / "data")
    store = Store(tmp_path / "data")
    with store.write() as transaction:
        transaction.execute(
            "update effects set sample_ratio_off = true, permission = 'refused', permission_reason = 'fixed', margin = 0.03"
        )
    [row] = lever_widening.widening(store, LEVER).to_dicts()
    store.close()
    assert "requests are not split between the arms as meant" in row["missing"]
    assert "control may not decide: fixed" in row["missing"]
    assert row["gain_asked"] == pytest.approx(0.08)


def test_a_server_answers_as_a_folder_does(room: EngineRoom) -> None:
    application = FastAPI()
    application.include_router(lever_api.router(room))

    async def asked(request: httpx.Request) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://test") as client:
            got = await client.get(request.url.raw_path.decode())
        return httpx.Response(got.status_code, content=got.content, headers=got.headers)

    far, near = Remote("http://127.0.0.1:1"), Local(room)
    far.http = httpx.Client(base_url="http://test", transport=httpx.MockTransport(lambda request: asyncio.run(asked(request))))
    assert far.holdout(LEVER, 0.1, 12, ["model"])["hours"].to_list() == near.holdout(LEVER, 0.1, 12, ["model"])["hours"].to_list()
    assert far.widening(LEVER, 0.02)["missing"].to_list() == near.widening(LEVER, 0.02)["missing"].to_list()
    assert far.http.get("/api/holdout").json()["error"]["message"] == "no lever came"
    assert far.http.get("/api/widening?lever=nope").json()["error"]["code"] == "invalid"
    assert far.holdout("prefix_caching").is_empty()


def test_the_commands_print_and_give_their_status(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--data", str(folder), "--lever", LEVER]
    assert main(["holdout", *data, "--change", "0.2", "--within", "2d", "--format", "json"]) == 0
    assert [row["segment"] for row in json.loads(capsys.readouterr().out)][-1] == "{}"
    assert main(["holdout", *data, "--change", "0.002", "--within", "6h"]) == 1
    assert "no share finds 0.2 % within 6 h" in capsys.readouterr().out
    assert main(["effects", *data, "--widening"]) == 0
    assert "h of a cycle of 168 h; " in capsys.readouterr().out
    assert main(["effects", *data, "--widening", "--by", "model"]) == 2
    assert "--by is not taken with --widening" in capsys.readouterr().err
    assert main(["holdout", "--data", str(folder), "--lever", "prefix_caching"]) == 3


def test_an_age_is_read_as_hours_and_another_word_is_refused() -> None:
    assert [hours(age) for age in ("90m", "24h", "7d")] == [1.5, 24, 168]
    with pytest.raises(ReportError, match="age 'soon'"):
        hours("soon")


def test_an_epoch_is_no_longer_than_14_days() -> None:
    assert timedelta(days=14) == lever_widening.FARTHEST


def test_an_effect_without_a_control_arm_says_so(room: EngineRoom) -> None:
    frame = room.effects(LEVER, ["model"]).filter(segment='{"model":"alone"}', metric="net_itl_s")
    assert frame.select("n_b", "gain", "basis", "is_misleading").row(0) == (0, None, "none", False)
    assert frame["note"].item().startswith("no control arm: nothing to compare with")
