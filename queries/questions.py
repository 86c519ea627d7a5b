"""Files `sql/*.sql` that begin with a header in, questions with a title, parameters and columns out. A file without one is our own affair.

A header is comment lines at the head of the file, each with one of these words; a line that is indented goes on with the one before:

    -- title: Hot replicas
    -- answers: Whether one replica carries more than its share.
    -- group: Routing
    -- param since moment 24h: from when on
    -- param model text null: this model alone
    -- column share ratio: of the model's requests
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from queries import files
from queries.question_values import KINDS, Parameter

PREFIX = "ask_"
UNITS = (
    *("text", "count", "tokens", "s", "bytes", "bytes/s", "ratio", "usd"),
    *("moment", "hours", "tokens/step", "requests/s", "boolean", "list", "number"),
)
_LINE = re.compile(r"-- (?P<word>title|answers|group|param|column)\b ?(?P<of>[^:]*): (?P<said>.+)")
_MORE = re.compile(r"--   (?P<said>\S.*)")


class QuestionHeaderError(ValueError):
    """A header cannot be read; names the file, the line, and what is taken."""


class UnknownInvestigationError(ValueError):
    """A question was asked for by a name that none has; says which may be meant."""


@dataclass(frozen=True)
class Column:
    """One column of an answer: its unit, or its kind where it has none, and what it says."""

    name: str
    unit: str
    what: str


@dataclass(frozen=True)
class Question:
    """A statement that is kept under a name, with what a reader has to know of it. `columns` is empty where nobody said them."""

    name: str
    title: str
    answers: str
    sql: str
    group: str = ""
    parameters: tuple[Parameter, ...] = ()
    columns: tuple[Column, ...] = ()


@functools.cache
def investigations() -> tuple[Question, ...]:
    """The shipped ones, by group and title. Raises QuestionHeaderError."""
    found = [read(name, files.question(name)) for name in files.question_names() if name.startswith(PREFIX)]
    return tuple(sorted(found, key=lambda question: (question.group, question.title)))


def investigation(name: str) -> Question:
    """The shipped one of this name, such as `hot-replicas`. Raises UnknownInvestigationError."""
    known = {question.name: question for question in investigations()}
    if name not in known:
        raise unknown(name, known)
    return known[name]


def unknown(name: str, known: Iterable[str]) -> UnknownInvestigationError:
    """The error that says that there is no such question, and what may be meant."""
    near = difflib.get_close_matches(name, list(known), 3, 0.4)
    meant = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return UnknownInvestigationError(f"question {name[:80]!r} is unknown; {meant}leverwatch ask --list and GET /api/questions name them")


def read(file: str, text: str) -> Question:
    """The question that a file's text holds; its header is no part of the SQL. Raises QuestionHeaderError."""
    words, body = _split(file, text)
    said = {word: told for word, _, told in words if word in ("title", "answers", "group")}
    missing = [word for word in ("title", "answers", "group") if word not in said]
    columns = tuple(_column(file, of, told) for word, of, told in words if word == "column")
    if missing or not columns:
        msg = f"queries/sql/{file}.sql: the header lacks {', '.join([*missing, *([] if columns else ['column'])])}"
        raise QuestionHeaderError(msg)
    parameters = tuple(_parameter(file, of, told) for word, of, told in words if word == "param")
    name = file.removeprefix(PREFIX).replace("_", "-")
    return Question(name, said["title"], said["answers"], body, said["group"], parameters, columns)


def _split(file: str, text: str) -> tuple[list[tuple[str, str, str]], str]:
    """The header's lines as (word, of what, said), and the statement behind them."""
    found: list[tuple[str, str, str]] = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if not line.startswith("--"):
            return found, "\n".join(lines[number:]).strip()
        more = _MORE.fullmatch(line)
        if more and found:
            word, of, said = found[-1]
            found[-1] = word, of, f"{said} {more['said']}"
        elif match := _LINE.fullmatch(line):
            found.append((match["word"], match["of"].strip(), match["said"]))
        else:
            msg = f"queries/sql/{file}.sql: line {number + 1} is no header line: {line[:60]!r}; taken: title, answers, group, param, column"
            raise QuestionHeaderError(msg)
    return found, ""


def _column(file: str, of: str, said: str) -> Column:
    name, _, unit = of.partition(" ")
    if unit not in UNITS:
        msg = f"queries/sql/{file}.sql: column {name}: unit {unit!r} is unknown; known: {', '.join(UNITS)}"
        raise QuestionHeaderError(msg)
    return Column(name, unit, said)


def _parameter(file: str, of: str, said: str) -> Parameter:
    name, kind, default = [*of.split(" ", 2), "", ""][:3]
    if kind not in KINDS or not default:
        msg = f"queries/sql/{file}.sql: param {of!r}: a name, one of {', '.join(KINDS)}, and a default (null for none) are taken"
        raise QuestionHeaderError(msg)
    return Parameter(name, kind, None if default == "null" else default, said)
