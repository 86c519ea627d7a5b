"""`leverwatch report` where its condition is wrong: what is shown is what was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from leverwatch.cli.main import main
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom


def test_a_condition_without_quotes_is_shown_with_how_to_quote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    EngineRoom(tmp_path, Config()).close()
    assert main(["report", "--where", "model=chat-70b", "--data", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "--where 'model=chat-70b': " in said
    assert "a text stands in single quotes, such as \"model = 'chat-70b'\"" in said
    assert "LINE 1" not in said
