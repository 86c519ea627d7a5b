"""The commands: what they answer, how they fail, and that the documents name them all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leverwatch.cli.main import COMMANDS, main

ROOT = Path(__file__).parent.parent


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    span = {
        "traceId": "00000000000000005561058f8eb8a542", "spanId": "eee19b7ec3c1b174", "name": "llm_request", "kind": 2,
        "startTimeUnixNano": "1795956574545198566", "endTimeUnixNano": "1795956575545198566",
        "attributes": [{"key": "gen_ai.usage.prompt_tokens", "value": {"intValue": "7"}}],
    }  # fmt: skip
    export = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "vllm.tracing.otel"}, "spans": [span]}]}]}
    path = tmp_path / "export.jsonl"
    path.write_text(json.dumps(export) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_and_is_in_the_documents(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert "usage: leverwatch" in capsys.readouterr().out
    documents = [path for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")) if path.name != "commands.md"]
    assert any(f"leverwatch {command}" in path.read_text(encoding="utf-8") for path in documents)


def test_loading_twice_stores_once(recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(tmp_path / "data")
    assert main(["load", str(recording), "--data", data]) == 0
    assert main(["load", str(recording), "--data", data]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("1 span stored, 0 already there")
    assert said[1].startswith("0 spans stored, 1 already there")


def test_what_cannot_be_loaded_is_named_and_the_rest_is_loaded(recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording.write_text(recording.read_text(encoding="utf-8") + "{broken\n", encoding="utf-8")
    assert main(["load", str(recording), "--data", str(tmp_path / "data")]) == 2
    said = capsys.readouterr()
    assert said.out.startswith("1 span stored")
    assert f"{recording}:2: not JSON" in said.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["report", "--by", "modell"], "key 'modell' is unknown"),
        (["report", "--metrics", "tpot"], "metric 'tpot' is unknown"),
        (["report", "--since", "yesterday"], "time 'yesterday': ISO 8601 or an age"),
        (["report", "--where", "drop table x"], "leverwatch: "),
        (["sql", "drop table spans"], "leverwatch: "),
        (["sql", "selec 1"], "leverwatch: "),
        (["sql", "select * from read_csv('/etc/passwd')"], "leverwatch: "),
    ],
)
def test_wrong_use_is_one_line_and_status_two(
    recording: Path, tmp_path: Path, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ["--data", str(tmp_path / "data")]
    assert main(["load", str(recording), *data]) == 0
    capsys.readouterr()
    assert main([*words, *data]) == 2
    said = capsys.readouterr()
    assert told in said.err
    assert len(said.err.strip().splitlines()) == 1
    assert said.out == ""


def test_a_folder_without_data_is_an_error_and_is_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--data", str(tmp_path / "nothing")]) == 2
    assert "no data here" in capsys.readouterr().err
    assert not (tmp_path / "nothing").exists()


def test_a_report_goes_to_a_file_in_each_format(recording: Path, tmp_path: Path) -> None:
    data = ["--data", str(tmp_path / "data")]
    assert main(["load", str(recording), *data]) == 0
    for fmt in ("table", "json", "csv", "parquet"):
        out = tmp_path / f"report.{fmt}"
        assert main(["report", *data, "--by", "engine", "--format", fmt, "--out", str(out)]) == 0
        assert out.stat().st_size > 0


def test_a_cut_answer_says_truncated(recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--data", str(tmp_path / "data")]
    main(["load", str(recording), *data])
    capsys.readouterr()
    assert main(["sql", "select * from range(100)", "--limit", "3", "--format", "json", *data]) == 0
    said = capsys.readouterr()
    answer = json.loads(said.out)
    assert (answer["row_count"], answer["truncated"]) == (3, True)
    assert "truncated" in said.err


def test_many_lines_of_one_fault_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text('{"a": 1}\n' * 1200 + "[]\n", encoding="utf-8")
    assert main(["load", str(wrong), "--data", str(tmp_path / "data")]) == 2
    said = capsys.readouterr()
    assert said.out == "nothing stored, from 1 file\n"
    assert said.err.count("\n") == 2
    assert "(and 1,199 more like it)" in said.err


def test_a_folder_without_telemetry_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["load", str(tmp_path / "empty"), "--data", str(tmp_path / "data")]) == 2
    assert "empty: no file below it ends in .pb, .json" in capsys.readouterr().err
