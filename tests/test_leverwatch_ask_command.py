"""`leverwatch ask`: questions by their names, over a folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from leverwatch.cli.main import main
from queries import saved_questions
from queries.questions import investigations
from queries.results import SqlResult
from queries.saved_questions import Draft
from queries.store import Store

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., int]:
    store = Store(tmp_path)
    saved_questions.save(store, Draft("add", "One more", "select $n + 1 as a, $t as t", {"n": "41", "t": "'7'"}), NOW)
    store.close()
    return lambda *words: main(["ask", *words, "--data", str(tmp_path)])


def test_every_question_is_listed_with_its_parameters(ask: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert ask("--list") == 0
    said = capsys.readouterr().out
    assert all(f"{question.name}: {question.title}\n" in said for question in investigations())
    assert "add: One more\n    version 1, saved on 2026-03-02\n    n=41, t='7'\n" in said


def test_a_question_is_answered_with_its_defaults_and_with_given_values(
    ask: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ask("add", "--param", "t=x=y", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [[42, "x=y"]]
    assert ask("how-fresh", "--format", "csv") == 0
    assert capsys.readouterr().out == "sender,newest_span_at,heard_at,behind_s,silent_s\n"


def test_a_table_has_digits_that_can_be_read_and_other_formats_all_of_them() -> None:
    answer = SqlResult([("a", "DOUBLE")], pa.table({"a": [0.123456789, 123456.789, 1e-9, 0.0, None]}), truncated=False, elapsed_s=0.1)
    assert answer.text(is_rounded=True).split()[2:7] == ["0.1235", "123457", "1e-09", "0", "null"]
    assert "0.123456789" in answer.text()
    assert answer.rows()[0] == [0.123456789]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "name a question, or --list them"),
        (("hot-replica",), "did you mean 'hot-replicas'"),
        (("add", "--param", "m=1"), "parameter $m is unknown; known: n, t"),
        (("add", "--param", "n"), "NAME=VALUE is taken"),
        (("tenants", "--param", "since=yesterday"), "$since = 'yesterday': a time"),
    ],
)
def test_what_cannot_be_asked_is_one_line_and_status_2(
    ask: Callable[..., int], capsys: pytest.CaptureFixture[str], words: tuple[str, ...], told: str
) -> None:
    assert ask(*words) == 2
    assert told in capsys.readouterr().err
