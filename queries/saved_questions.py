"""The table `saved_questions`: a question that somebody keeps in, `Question`s out, every version of each."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import polars as pl

from queries import files, question_values
from queries.question_values import Parameter
from queries.questions import Question, investigations, unknown
from queries.store import Store

MOST_QUESTIONS = 1_000
MOST_VERSIONS = 50
MOST_SQL_CHARACTERS = 50_000
MOST_TITLE_CHARACTERS = 200
GROUP = "Saved here"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class SavedQuestionError(ValueError):
    """A question cannot be saved under this name or with this text; says what is taken."""


class Frames(Protocol):
    """Answers our own statements: a store, a reader of one, or a connection."""

    def frame(self, sql: str, params: Mapping[str, Any] | None = None) -> pl.DataFrame:
        """The rows of a SELECT."""
        ...


@dataclass(frozen=True)
class Draft:
    """A question that is to be saved. `params` are defaults as text, by the parameter's name."""

    name: str
    title: str
    sql: str
    params: Mapping[str, str]
    created_by: str = ""


def save(store: Store, draft: Draft, now: datetime) -> int:
    """Stores a question as the newest version of its name, and gives that version's number.

    Raises:
        SavedQuestionError: its name, title, text or parameters cannot be used, or there are too many.
    """
    _check(draft)
    row = {"name": draft.name, "title": draft.title.strip(), "sql": draft.sql.strip(), "params": json.dumps(dict(draft.params))}
    return _add(store, {**row, "created_by": draft.created_by, "created_at": now, "is_deleted": False})


def delete(store: Store, name: str, created_by: str, now: datetime) -> bool:
    """Takes a question away, its versions stay; False where there is none of this name."""
    rows = store.rows(files.question("saved_questions"), {"name": name})
    for row in rows:
        kept = {key: row[key] for key in ("name", "title", "sql", "params")}
        _add(store, {**kept, "created_by": created_by, "created_at": now, "is_deleted": True})
    return bool(rows)


def listed(reader: Frames) -> list[Question]:
    """The questions that people saved, by name."""
    return [question_of(row) for row in reader.frame(files.question("saved_questions"), {"name": None}).to_dicts()]


def find(reader: Frames, name: str) -> Question:
    """The shipped or saved question of a name.

    Raises:
        UnknownInvestigationError: there is none; says which may be meant.
    """
    shipped = {question.name: question for question in investigations()}
    if name in shipped:
        return shipped[name]
    saved = {question.name: question for question in listed(reader)}
    if name not in saved:
        raise unknown(name, [*shipped, *saved])
    return saved[name]


def question_of(row: Mapping[str, Any]) -> Question:
    """A row of the table as a question: its parameters are those in its text."""
    defaults = json.loads(row["params"])
    parameters = tuple(Parameter(name, "any", defaults.get(name)) for name in question_values.names(row["sql"]))
    by = f" by {row['created_by']}" if row["created_by"] else ""
    answers = f"version {row['version']}, saved{by} on {row['created_at']:%Y-%m-%d}"
    return Question(row["name"], row["title"], answers, row["sql"], GROUP, parameters)


def _check(draft: Draft) -> None:
    taken = {question.name for question in investigations()}
    unknown_names = sorted(set(draft.params) - set(question_values.names(draft.sql)))
    wrong = (
        (_NAME.fullmatch(draft.name) is None, f"name {draft.name[:80]!r}: 1 to 64 small letters, digits and hyphens are taken"),
        (draft.name in taken, f"name {draft.name!r} is that of a shipped question; take another"),
        (not _is_line(draft.title, 1, MOST_TITLE_CHARACTERS), f"title: one line of 1 to {MOST_TITLE_CHARACTERS} characters is taken"),
        (
            not _is_line(draft.created_by, 0, MOST_TITLE_CHARACTERS),
            f"created_by: one line of up to {MOST_TITLE_CHARACTERS} characters is taken",
        ),
        (not 1 <= len(draft.sql.strip()) <= MOST_SQL_CHARACTERS, f"sql: 1 to {MOST_SQL_CHARACTERS:,} characters are taken"),
        (bool(unknown_names), f"params names {', '.join(unknown_names)}, which the statement does not have"),
        (any(len(text) > MOST_SQL_CHARACTERS for text in draft.params.values()), "params: a default is too long"),
    )
    for is_wrong, message in wrong:
        if is_wrong:
            raise SavedQuestionError(message)


def _is_line(text: str, least: int, most: int) -> bool:
    return least <= len(text.strip()) and len(text) <= most and text.isprintable()


def _add(store: Store, row: dict[str, Any]) -> int:
    """Adds the next version of a name; the oldest beyond those that are kept go."""
    with store.write() as transaction:
        held = transaction.frame(
            "select name, max(version) as version, arg_max(is_deleted, version) as is_deleted from saved_questions group by name"
        )
        versions = dict(held.select("name", "version").iter_rows())
        standing = set(held.filter(~pl.col("is_deleted"))["name"])
        if row["name"] not in standing and len(standing) >= MOST_QUESTIONS:
            msg = f"{MOST_QUESTIONS:,} questions are saved already"
            raise SavedQuestionError(msg)
        version = int(versions.get(row["name"], 0)) + 1
        transaction.insert("saved_questions", pl.DataFrame([{**row, "version": version}]))
        beyond = {"name": row["name"], "version": version - MOST_VERSIONS}
        transaction.execute("delete from saved_questions where name = $name and version <= $version", beyond)
    return version
