"""The database's errors told apart: those that one odd row can cause, and those after which it must be opened again."""

from __future__ import annotations

import duckdb

STORE_ERRORS = (duckdb.Error,)
"""Everything that the database says of itself, such as that it cannot write."""
DATA_ERRORS = (duckdb.DataError, duckdb.IntegrityError, duckdb.InvalidInputException)


def is_fatal(error: BaseException) -> bool:
    """Whether the database has given itself up, as after a full disk: only opening it again helps."""
    return isinstance(error, duckdb.FatalException)
