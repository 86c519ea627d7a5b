"""A report's frame in, why values of it are missing out, in words: an empty field must not be left to guesses."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import polars as pl

from leverwatch.connection import Connection

MOST_SENTENCES = 12
_OLDER = "; or the cells are older than the metric"


def told(connection: Connection, frame: pl.DataFrame, source: str = "auto") -> list[str]:
    """A sentence for each reason for which rows of a report lack metrics; or one that there is no request at all.

    Raises:
        SqlError: the store cannot be asked.
    """
    if not frame["requests"].sum():
        return ["there is no request in what was asked for; `leverwatch doctor` says what came"]
    counts = {name[:-2]: int((frame[name] == 0).sum()) for name in frame.columns if name.endswith("_n")}
    lacking = {name: rows for name, rows in counts.items() if rows}
    if not lacking:
        return []
    whys = dict(connection.ask("select name, missing from metrics").frame().iter_rows())
    same = groupby((name for name in lacking if name in whys), lambda name: (whys[name], lacking[name]))
    older = _OLDER if source == "cells" else ""
    said = [f"{_empty(list(names), rows, len(frame))}: {why}{older}" for (why, rows), names in same]
    left = len(said) - MOST_SENTENCES
    more = [f"and for {left} more reasons: `missing` of the table `metrics` says what each metric needs"] if left > 0 else []
    return [*said[:MOST_SENTENCES], *more]


def _empty(names: Sequence[str], rows: int, of: int) -> str:
    listed = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} empty"
    return listed if rows == of else f"{listed} in {rows:,} of {of:,} rows"
