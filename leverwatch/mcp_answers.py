"""Frames and results in, what an MCP tool answers out: at most so many rows and characters, and a sentence where something was left out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import polars as pl

from queries import arrow_values
from queries.results import SqlResult

MOST_ROWS = 200
MOST_CHARACTERS = 24_000  # some 6,000 tokens of a model's context
MOST_TEXT_CHARACTERS = 600
_NARROW = "name fewer columns or keys, filter, aggregate, or take a shorter period"


def of_frame(frame: pl.DataFrame) -> dict[str, Any]:
    """`{columns, rows, row_count, cut}` of a frame; `cut` is null where everything is there."""
    table = frame.to_arrow()
    values = [arrow_values.plain(table.column(name).combine_chunks()) for name in table.column_names]
    return bounded(table.column_names, [list(row) for row in zip(*values, strict=True)])


def of_result(result: SqlResult) -> dict[str, Any]:
    """The same of an answer to SQL, which may have been cut by its own limit before."""
    answer = bounded([name for name, _ in result.columns], result.rows())
    return answer if answer["cut"] or not result.truncated else answer | {"cut": result.note}


def bounded(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """The first rows that are not too many and not too long; a text that is longer than `MOST_TEXT_CHARACTERS` ends in an ellipsis."""
    shown, characters = [], len(json.dumps(list(columns), ensure_ascii=False))
    for row in rows[:MOST_ROWS]:
        short = [_short(value) for value in row]
        characters += len(json.dumps(short, ensure_ascii=False)) + 2
        if characters > MOST_CHARACTERS:
            break
        shown.append(short)
    is_cut = len(shown) < len(rows)
    cut = f"only the first {len(shown):,} of {len(rows):,} rows are here: {_NARROW}" if is_cut else None
    return {"columns": list(columns), "rows": shown, "row_count": len(rows), "cut": cut}


def of_object(value: Any) -> dict[str, Any]:
    """A nested answer as JSON text, cut where it is too long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= MOST_CHARACTERS:
        return {"answer": value, "cut": None}
    return {"answer": text[:MOST_CHARACTERS], "cut": f"only the first {MOST_CHARACTERS:,} of {len(text):,} characters are here"}


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= MOST_TEXT_CHARACTERS else f"{value[:MOST_TEXT_CHARACTERS]}…"
    if isinstance(value, dict | list) and len(text := json.dumps(value, ensure_ascii=False)) > MOST_TEXT_CHARACTERS:
        return f"{text[:MOST_TEXT_CHARACTERS]}…"
    return value
