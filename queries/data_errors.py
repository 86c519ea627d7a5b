"""The database's errors that speak of rows, not of the disk or of our statements: what one odd row can cause."""

from __future__ import annotations

import duckdb

DATA_ERRORS = (duckdb.DataError, duckdb.IntegrityError, duckdb.InvalidInputException)
