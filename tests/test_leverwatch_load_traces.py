"""`leverwatch load` of a public trace: it is run through the simulator, and every request of it can be asked about."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from collectors.recorded import Body
from collectors.recorded_kinds import NotLoadedError
from leverwatch.cli.main import main
from leverwatch.connecting import connect
from leverwatch.simulating import Simulator

DATA = Path(__file__).parents[1] / "../shared/data"
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"


def first(name: str, lines: int, folder: Path) -> Path:
    """The first lines of a trace, in a file of their own."""
    if not (DATA / name).is_file():
        pytest.skip(f"no trace beside the checkout: {DATA / name}")
    path = folder / name
    path.write_text("".join((DATA / name).read_text(encoding="utf-8").splitlines(keepends=True)[:lines]), encoding="utf-8")
    return path


def tiny(folder: Path, *more: str) -> Path:
    """A trace of Mooncake of two requests, ten minutes apart, and what else."""
    rows = [{"timestamp": at, "input_length": 700, "output_length": 9, "hash_ids": [1, 2]} for at in (0, 600_000)]
    path = folder / "tiny.jsonl"
    path.write_text("\n".join([*map(json.dumps, rows), *more]), encoding="utf-8")
    return path


def simulator(**settings: object) -> tuple[Simulator, list[str], list[str]]:
    told: list[str] = []
    progress: list[str] = []
    return Simulator(now=NOW, told=told.append, progress=progress.append, **settings), told, progress  # type: ignore[arg-type]


def columns(data: str) -> dict[str, object]:
    asked = (
        "select model, count(*) as n, count(prompt_tokens) as prompt, count(cached_tokens) as cached, count(output_tokens) as output, "
        "count(ttft_s) as ttft, count(*) filter (outcome = 'ok') as ok, bool_and(starts_with(replica, model)) as named, "
        "sum(prompt_tokens)::bigint as tokens, epoch_us(min(started_at)) as began_us, epoch_us(max(started_at)) as last_us "
        "from requests group by model"
    )
    with connect(data) as connection:
        (row,) = connection.sql(asked).to_dicts()
    return row


def test_a_thousand_requests_of_mooncake_are_all_there_with_their_tokens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, data = first("mooncake_conversation_trace.jsonl", 1000, tmp_path), str(tmp_path / "data")
    assert main(["load", str(trace), "--began", "2026-02-01T10:00", "--data", data]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"{trace}: 1,000 requests simulated, 2026-02-01T10:00:00Z to 2026-02-01T10:0")
    assert "0 rejected, from 1 file" in said[1]
    row = columns(data)
    asked = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
    assert {row[name] for name in ("n", "prompt", "cached", "output", "ttft", "ok")} == {1000}
    assert (row["model"], row["named"], row["tokens"]) == ("mooncake-simulated", True, sum(one["input_length"] for one in asked))
    began_us = int(datetime(2026, 2, 1, 10, tzinfo=UTC).timestamp() * 1e6)
    assert (row["began_us"], row["last_us"]) == (began_us, began_us + asked[-1]["timestamp"] * 1000)


def test_the_same_trace_begun_at_the_same_moment_is_stored_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, data = str(tiny(tmp_path)), str(tmp_path / "data")
    for began in ("2026-02-01", "2026-02-01", "2026-02-02"):
        assert main(["load", trace, "--began", began, "--data", data]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if "stored" in line]
    assert [{int(found) > 0 for found in re.findall(r"(\d+) already there", line)} for line in said] == [{False}, {True}, {False}]
    assert {int(found) for found in re.findall(r"(\d+) (?:spans|samples) stored", said[1])} == {0}
    assert columns(data)["n"] == 4


def test_azure_keeps_its_own_times_and_mooncake_ends_now(tmp_path: Path) -> None:
    (tmp_path / "azure.csv").write_text(AZURE, encoding="utf-8")
    play, told, _ = simulator()
    list(play.bodies(tmp_path / "azure.csv"))
    list(play.bodies(tiny(tmp_path)))
    assert "2 requests simulated, 2023-11-16T18:15:46Z to 2023-11-16T18:15:5" in told[0]
    assert "2 requests simulated, 2026-05-01T11:45:00Z to 2026-05-01T11:55:00Z" in told[1]


def test_speed_and_beginning_move_a_trace(tmp_path: Path) -> None:
    play, told, _ = simulator(speed=10.0, began=NOW - timedelta(days=1))
    list(play.bodies(tiny(tmp_path)))
    assert "2 requests simulated, 2026-04-30T12:00:00Z to 2026-04-30T12:01:00Z" in told[0]


def test_bodies_are_the_same_for_the_same_file_and_others_at_another_speed(tmp_path: Path) -> None:
    trace = tiny(tmp_path)

    def contents(**settings: object) -> list[bytes]:
        return [body.content for body in simulator(**settings)[0].bodies(trace) if isinstance(body, Body)]

    assert contents() == contents() != contents(speed=2.0)
    assert contents() != contents(seed=2)


def test_what_is_damaged_is_counted_and_named_and_the_rest_is_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tiny(tmp_path, "{", '{"timestamp": 5}')
    assert main(["load", str(trace), "--data", str(tmp_path / "data")]) == 2
    said = capsys.readouterr()
    assert "2 requests simulated" in said.out
    assert "; 2 lines were not read" in said.out
    assert f"not loaded: {trace}:3: " in said.err
    assert columns(str(tmp_path / "data"))["n"] == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--speed", "0"], "speed 0: a number from 0.001 to 10000 is taken"),
        (["--speed", "1e-300"], "speed 1e-300: a number from 0.001 to 10000 is taken"),
        (["--began", "1950-01-01"], "began 1950-01-01T00:00:00+00:00: a moment of the years 1971 to 2199 is taken"),
        (["--began", "2600-01-01"], "began 2600-01-01T00:00:00+00:00: a moment of the years 1971 to 2199 is taken"),
        (["--began", "9998-12-31"], "began 9998-12-31T00:00:00+00:00: a moment of the years 1971 to 2199 is taken"),
        (["--began", "9999-12-31"], "time '9999-12-31': ISO 8601 or an age such as 90m, 24h, 7d is taken, from year 2 to 9998"),
        (
            ["--began", "2199-12-31T23:55"],
            "its last request would come at 2200-01-01T00:05:00Z; a moment of the years 1971 to 2199 is taken",
        ),
        (["--began="], "ISO 8601 or an age"),
        (["--began", "soon"], "ISO 8601 or an age"),
        (["--kind", "azure-trace"], "a first line with the columns TIMESTAMP, ContextTokens, GeneratedTokens is taken"),
    ],
)
def test_what_cannot_be_played_is_refused_with_the_reason(
    tmp_path: Path, arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["load", str(tiny(tmp_path)), *arguments, "--data", str(tmp_path / "data")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line


def test_a_trace_that_would_have_begun_before_1971_is_refused(tmp_path: Path) -> None:
    play, told, _ = simulator(speed=0.001)
    trace = tiny(tmp_path, json.dumps({"timestamp": 2e9, "input_length": 10, "output_length": 1, "hash_ids": [1]}))
    (problem,) = play.bodies(trace)
    assert str(problem).startswith(f"{trace}: it would begin at 1962-")
    assert told == []


def test_a_file_of_another_kind_is_read_as_ever(tmp_path: Path) -> None:
    (tmp_path / "requests.csv").write_text("request_id,started_at\nr1,2026-01-01T00:00:00Z\n", encoding="utf-8")
    play, told, _ = simulator()
    (body,) = play.bodies(tmp_path / "requests.csv")
    assert isinstance(body, Body)
    assert (body.signal, told) == ("requests", [])


def test_progress_is_told_of_long_work_alone(tmp_path: Path) -> None:
    def clock(step_s: float) -> Iterator[float]:
        now_s = 0.0
        while True:
            yield now_s
            now_s += step_s

    for step_s, lines in ((0.01, 0), (1.0, 2)):
        play, _, progress = simulator(clock=clock(step_s).__next__)
        list(play.bodies(tiny(tmp_path)))
        assert len(progress) == lines
    assert progress[0].endswith("tiny.jsonl: 1 of 2 requests simulated")


def test_a_fleet_that_cannot_keep_up_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leverwatch.simulating.PATIENCE_S", 0.0)
    play, told, _ = simulator()
    *_, problem = play.bodies(tiny(tmp_path))
    assert isinstance(problem, NotLoadedError)
    assert "1 of 2 requests wait a day after the last one came: at speed 1 it is too much for eight replicas" in str(problem)
    assert "1 requests simulated" in told[0]
