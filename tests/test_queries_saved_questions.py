"""Questions that people save: versions, names that are taken, and what cannot be saved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from queries import saved_questions
from queries.questions import UnknownInvestigationError
from queries.saved_questions import Draft, SavedQuestionError
from queries.store import Store

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
DRAFT = Draft("slow-ones", "The slow ones", "select * from requests where e2e_s > $over_s limit $rows", {"over_s": "10"}, "ana")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.close()


def test_a_saved_question_is_found_by_its_name_with_its_parameters(store: Store) -> None:
    assert saved_questions.save(store, DRAFT, NOW) == 1
    found = saved_questions.find(store, "slow-ones")
    assert (found.title, found.sql, found.answers) == (DRAFT.title, DRAFT.sql, "version 1, saved by ana on 2026-03-02")
    assert [(one.name, one.default) for one in found.parameters] == [("over_s", "10"), ("rows", None)]


def test_the_newest_version_counts_and_one_taken_away_may_come_again(store: Store) -> None:
    saved_questions.save(store, DRAFT, NOW)
    assert saved_questions.save(store, replace(DRAFT, title="Slower"), NOW) == 2
    assert [question.title for question in saved_questions.listed(store)] == ["Slower"]
    assert saved_questions.delete(store, "slow-ones", "ben", NOW)
    assert not saved_questions.delete(store, "slow-ones", "ben", NOW)
    with pytest.raises(UnknownInvestigationError, match="question 'slow-ones' is unknown"):
        saved_questions.find(store, "slow-ones")
    assert saved_questions.save(store, DRAFT, NOW) == 4
    assert store.rows("select count(*) as n from saved_questions") == [{"n": 4}]


def test_the_oldest_versions_go_beyond_those_that_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_questions, "MOST_VERSIONS", 2)
    for _ in range(4):
        saved_questions.save(store, DRAFT, NOW)
    assert store.rows("select min(version) as least, max(version) as most from saved_questions") == [{"least": 3, "most": 4}]


def test_no_more_names_are_taken_than_can_be_listed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_questions, "MOST_QUESTIONS", 1)
    saved_questions.save(store, DRAFT, NOW)
    with pytest.raises(SavedQuestionError, match="1 questions are saved already"):
        saved_questions.save(store, replace(DRAFT, name="another"), NOW)
    assert saved_questions.save(store, DRAFT, NOW) == 2
    saved_questions.delete(store, DRAFT.name, "", NOW)
    assert saved_questions.save(store, replace(DRAFT, name="another"), NOW) == 1, "one that was taken away takes no place"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"name": "Slow"}, "small letters"),
        ({"name": "../x"}, "small letters"),
        ({"name": ""}, "small letters"),
        ({"name": "hot-replicas"}, "is that of a shipped question"),
        ({"title": " "}, "title: one line"),
        ({"title": "a\x1b[2J"}, "title: one line"),
        ({"created_by": "a\nb"}, "created_by: one line"),
        ({"sql": " "}, "sql: 1 to 50,000"),
        ({"sql": "x" * 50_001, "params": {}}, "sql: 1 to 50,000"),
        ({"params": {"ower_s": "1"}}, "params names ower_s, which the statement does not have"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_what_is_taken(store: Store, change: dict[str, object], told: str) -> None:
    with pytest.raises(SavedQuestionError, match=told):
        saved_questions.save(store, replace(DRAFT, **change), NOW)  # type: ignore[arg-type]
    assert saved_questions.listed(store) == []
