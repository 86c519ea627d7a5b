"""A named question and the rows that it asks in, its answer out: where rows stand in memory and in no store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import polars as pl

from queries import files
from queries.store import ArrowTable, in_utc


def answered(question: str, relations: Mapping[str, ArrowTable], params: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """The rows that a question gives of these relations, by the names under which it reads them.

    Raises:
        UnknownQuestionError: no file holds the question.
    """
    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'")
        connection.execute("set enable_external_access = false")
        connection.execute("set threads = 1")  # whoever asks is one of many that work beside each other
        for name, rows in relations.items():
            connection.register(name, rows)
        return in_utc(pl.DataFrame(connection.sql(files.question(question), params=dict(params) if params else None)))
