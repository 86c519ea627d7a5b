"""What a command shows of an answer: every metric asked for, why values are missing, segments by key; and no unknown name goes unsaid."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest
from fastapi import Depends, FastAPI

from dashboards import answers
from leverwatch.cli import effects, effects_table, missing
from leverwatch.cli.main import main
from leverwatch.cli.report import long_form
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from leverwatch.known_parameters import only_known, refuse_unknown
from leverwatch.local import Local
from leverwatch.remote import Remote
from pipeline.metrics import METRICS, in_cells
from queries.cells_report import is_held
from queries.report import ReportError

SEGMENT = {"hardware": "h100", "model": "m"}
EFFECT = {"lever": "speculation", "segment": SEGMENT, "metric": "tpot_s", "method": "m", "n_a": 3, "gain": 0.123456, "trap": None}


@pytest.fixture
def room(tmp_path: Path) -> Iterator[EngineRoom]:
    opened = EngineRoom(tmp_path, Config())
    yield opened
    opened.close()


def remote(answer: pl.DataFrame) -> Remote:
    """A server that gives one answer, as `dashboards.answers` writes it."""
    made, told = Remote("http://127.0.0.1:1"), answers.rows(answer)
    reply = httpx.Response(200, content=bytes(told.body), headers=dict(told.headers))
    made.http = httpx.Client(base_url=made.url, transport=httpx.MockTransport(lambda _: reply))
    return made


def row(**metrics: int) -> dict[str, Any]:
    """A report's row with metrics of so many requests each."""
    said = {f"{name}{end}": value for name, n in metrics.items() for end, value in (("_n", n), ("_coverage", 1.0), ("_provenance", "span"))}
    return {"requests": 4} | {name: 0.5 if n else None for name, n in metrics.items()} | said


def test_a_metric_whose_name_ends_like_what_is_said_of_one_is_shown() -> None:
    long = long_form(pl.DataFrame([row(draft_coverage=4, tpot_s=3)]), [])
    assert long.select("metric", "value", "n").rows() == [("draft_coverage", 0.5, 4), ("tpot_s", 0.5, 3)]


def test_each_reason_for_missing_values_is_said_once_with_its_metrics_and_rows(room: EngineRoom) -> None:
    frame = pl.DataFrame([row(tpot_s=4, draft_acceptance=0, draft_length=0), row(tpot_s=0, draft_acceptance=0, draft_length=0)])
    assert missing.told(Local(room), frame) == [
        "tpot_s is empty in 1 of 2 rows: decode time or output tokens are unknown",
        "draft_acceptance, draft_length are empty: no engine puts draft acceptance on its span; a response tap brings it",
    ]
    assert missing.told(Local(room), frame, "cells")[0].endswith("are unknown; or the cells are older than the metric")
    assert missing.told(Local(room), pl.DataFrame([row(tpot_s=4)])) == []


@pytest.mark.parametrize("frame", [pl.DataFrame([row()]).head(0), pl.DataFrame([row() | {"requests": 0}])])
def test_a_report_of_nothing_says_that_there_is_no_request(room: EngineRoom, frame: pl.DataFrame) -> None:
    [said] = missing.told(Local(room), frame)
    assert said.startswith("there is no request")


def test_a_server_gives_segments_as_a_folder_does_and_csv_takes_them() -> None:
    asked = remote(pl.DataFrame([EFFECT | {"segment": json.dumps(SEGMENT)}]))
    frame = asked.effects("speculation")
    assert frame["segment"].to_list() == ['{"hardware":"h100","model":"m"}']
    assert '"{""hardware"":""h100"",""model"":""m""}"' in frame.write_csv()


def test_an_answer_without_rows_keeps_its_columns() -> None:
    asked = remote(pl.DataFrame(schema={"model": pl.String, "requests": pl.Int64}))
    assert asked.report("model").write_csv() == "model,requests\n"


def test_effects_are_shown_by_key_without_columns_that_say_nothing() -> None:
    shown = effects.shown(pl.DataFrame([EFFECT | {"segment": json.dumps(SEGMENT)}]))
    assert shown.rows(named=True) == [{"model": "m", "hardware": "h100", "metric": "tpot_s", "n_a": 3, "gain": 0.1235}]


def test_a_terminal_gets_an_effect_s_few_columns_and_the_arm_where_it_is_not_treated() -> None:
    long = EFFECT | {"segment": json.dumps(SEGMENT), "arm_a": "treated", "coverage": 1.0, "note": "few", "basis": "control"}
    both = pl.DataFrame([long, long | {"arm_a": "disabled_in_place"}])
    head, _, row, note = effects_table.text(both.head(1)).splitlines()
    assert head.split() == ["segment", "metric", "gain", "n", "basis", "note"]
    assert " ".join(row.split()) == "m · h100 tpot_s +12 % 3 control 1"
    assert note == "1: few"
    assert [row.split()[4] for row in effects_table.text(both).splitlines()[2:4]] == ["treated", "disabled_in_place"]
    assert "coverage" in effects.shown(both).columns


def test_a_table_of_effects_fits_a_terminal_whatever_segments_and_notes_hold() -> None:
    keys = {"model": "m" * 70, "hardware": "h100", "topology": "tp8", "input_bucket": "2048-8191", "temperature_bucket": "0.3-0.8"}
    effect = {
        "metric": "conditional_acceptance_at_1",
        "arm_a": "treated",
        "n_a": 10**7,
        "n_b": 10**7,
        "value_a": 0.0123456,
        "value_b": 98765.4,
    }
    effect |= {"gain": -1.234, "gain_low": -2.5, "gain_high": 0.0123, "believed": "harm", "turned_at": "2026-11-30T10:05:00Z"}
    effect |= {"blocks": 288, "basis": "switchback", "note": "why " * 60}
    rows = [effect | {"segment": json.dumps({**keys, "input_bucket": bucket})} for bucket in ("512-2047", "2048-8191")]
    shown = effects_table.text(pl.DataFrame(rows)).splitlines()
    assert max(map(len, shown)) <= effects_table.WIDTH
    assert ("512-2047" in shown[2], "2048-8191" in shown[3]) == (True, True)
    assert "-123 % (-250..+1.2 %)" in shown[2]
    assert "harm since 11-30 10:05" in shown[2]
    assert " ".join(" ".join(shown[4:]).split()) == "1: " + " ".join(["why"] * 60)


def test_effects_of_some_metrics_are_asked_for_by_name_and_an_unknown_one_is_refused() -> None:
    frame = pl.DataFrame([EFFECT, EFFECT | {"metric": "net_itl_s"}])
    assert effects.of_metrics(frame, ["net_itl_s", "ttft_s_p95"])["metric"].to_list() == ["net_itl_s"]
    assert len(effects.of_metrics(frame, ())) == 2
    with pytest.raises(ReportError, match="metric 'net_itl' is unknown; did you mean 'net_itl_s'"):
        effects.of_metrics(frame, ["net_itl"])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--gain-on", "0.1"], "--gain-on is taken with --widening only"),
        (["--widening", "--metrics", "tpot_s"], "--metrics is not taken with --widening"),
        (["--break-even", "--wide"], "--wide is not taken with --break-even"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(
    tmp_path: Path, asked: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["effects", "--data", str(tmp_path), "--lever", "speculation", *asked]) == 2
    assert said in capsys.readouterr().err


def test_an_unknown_key_of_effects_is_refused_and_not_taken_for_no_effect(room: EngineRoom) -> None:
    with pytest.raises(ReportError, match="key 'modell' is unknown; did you mean 'model'"):
        room.effects("speculation", ["modell"])
    assert room.effects("speculation", ["model", "tenant"]).is_empty()


def test_a_metric_that_follows_the_configuration_is_not_asked_of_cells() -> None:
    assert [metric.name for metric in METRICS if is_held(metric) != in_cells(metric)] == []


def test_cells_give_those_of_the_core_metrics_that_they_keep(room: EngineRoom) -> None:
    frame = room.report(source="cells")
    assert "draft_acceptance" in frame.columns
    assert "net_itl_s" not in frame.columns
    with pytest.raises(ReportError, match="of those asked for are kept: tpot_s"):
        room.report(source="cells", metrics=["tpot_s", "net_itl_s"])


def test_an_unknown_parameter_of_the_api_is_refused_with_those_taken() -> None:
    application = FastAPI(dependencies=[Depends(only_known)])
    refuse_unknown(application)

    @application.get("/api/thing")
    @application.get("/page")
    def thing(by: str = "") -> str:
        return by

    async def asked(path: str) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://test") as client:
            return await client.get(path)

    refused = asyncio.run(asked("/api/thing?source=cells"))
    assert (refused.status_code, refused.json()["error"]["message"]) == (400, "parameter 'source' is unknown; known: by")
    assert asyncio.run(asked("/api/thing?by=x")).json() == "x"
    assert asyncio.run(asked("/page?token=x")).status_code == 200
