"""The answer to a statement in, the cells that a page shows out: numbers short, nulls as such, long values cut with the whole behind."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from queries.questions import Question
from queries.results import SqlResult

CUT_CHARACTERS = 120
MOST_CELLS = 30_000  # on a page; the files have all
_NUMBERS = ("BIGINT", "DOUBLE", "INTEGER", "HUGEINT", "DECIMAL", "FLOAT", "SMALLINT", "TINYINT", "UBIGINT", "UINTEGER")


@dataclass(frozen=True)
class Heading:
    """One column: its DuckDB type, and what the question says of it."""

    name: str
    type: str
    unit: str
    what: str
    is_number: bool


@dataclass(frozen=True)
class Cell:
    """One value as it is shown; `whole` where that is less than there is."""

    text: str
    whole: str = ""
    is_null: bool = False


@dataclass(frozen=True)
class Table:
    """What of an answer is shown: all of it, or as many rows as a page can hold."""

    headings: list[Heading]
    rows: list[list[Cell]]
    left_out: int


def table(result: SqlResult, question: Question | None) -> Table:
    """An answer's cells. Only a question whose columns came in its order says what they are."""
    said = {one.name: one for one in question.columns} if question else {}
    headings = [
        Heading(name, kind, said[name].unit if name in said else "", said[name].what if name in said else "", kind.startswith(_NUMBERS))
        for name, kind in result.columns
    ]
    most = max(1, MOST_CELLS // max(1, len(headings)))
    rows = [[cell(value) for value in row] for row in result.rows()[:most]]
    return Table(headings, rows, result.row_count - len(rows))


def cell(value: Any) -> Cell:
    """One JSON-able value as it is shown."""
    if value is None:
        return Cell("null", is_null=True)
    if isinstance(value, float):
        short = f"{value:.6g}"
        return Cell(short, repr(value) if float(short) != value else "")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return Cell(text) if len(text) <= CUT_CHARACTERS else Cell(text[: CUT_CHARACTERS - 1] + "…", text)
