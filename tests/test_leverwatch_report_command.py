"""`leverwatch report` where its condition is wrong: what is shown is what was written."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from leverwatch.cli.main import main
from leverwatch.cli.report import long_form
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom


def test_a_condition_without_quotes_is_shown_with_how_to_quote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    EngineRoom(tmp_path, Config()).close()
    assert main(["report", "--where", "model=chat-70b", "--data", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "--where 'model=chat-70b': " in said
    assert "a text stands in single quotes, such as \"model = 'chat-70b'\"" in said
    assert "LINE 1" not in said


def test_words_stand_in_a_note_beside_the_numbers() -> None:
    said = {"_n": 2, "_coverage": 1.0, "_provenance": "span"}
    row = {"model": "m", "requests": 2, "error_rate": 0.51234, "bottleneck": "prefill:compute", "bottleneck_evidence": "prefill takes 70 %"}
    row |= {"requests_per_s": 3.0, "requests_per_s_totals": "scaled"}
    row |= {f"{name}{end}": value for name in ("error_rate", "bottleneck", "requests_per_s") for end, value in said.items()}
    long = long_form(pl.DataFrame([row]), ["model"])
    assert long["metric"].to_list() == ["error_rate", "bottleneck", "requests_per_s"]
    assert long["value"].to_list() == [0.5123, None, 3.0]
    assert long["note"].to_list() == [None, "prefill:compute: prefill takes 70 %", "totals scaled"]
