"""A sender's text commands no terminal, whatever command shows it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from leverwatch.cli import common
from leverwatch.cli.main import main
from queries.printable import printable
from queries.results import SqlResult

ODD = "m\x1b]0;mine\x07\x9b31m\u202egnp\r\x00"
ESCAPED = r"m\x1b]0;mine\x07\x9b31m\u202egnp\r\x00"


def test_what_a_terminal_would_act_on_stands_as_its_escape_and_nothing_else_changes() -> None:
    assert printable(ODD) == ESCAPED
    text = "Größe ┆ 模型 🚀\n\tline"
    assert printable(text) == text


def test_tables_and_sentences_of_commands_hold_no_control_characters(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = SqlResult([(ODD, "VARCHAR")], pa.table({ODD: [ODD, "a\tb"]}), truncated=False, elapsed_s=0.0).text()
    assert text.splitlines() == [ESCAPED, "-" * len(ESCAPED), ESCAPED, r"a\tb", "(2 rows)"]
    assert ESCAPED in str(common.write(pl.DataFrame({"model": [ODD]}), "table", None))
    common.say([ODD])
    assert main(["silence", "end", ODD, "--data", str(tmp_path)]) == 2
    assert "\x1b" not in (said := capsys.readouterr().err)
    assert ESCAPED in said
