"""The rows of an ad-hoc query in; JSON-able values, CSV, Parquet, Arrow or a text table out.

In JSON every value is what JSON can hold exactly. A BIGINT is a number however large; HUGEINT and DECIMAL are numbers where a 64-bit
integer or a double holds them exactly, else text. NaN and the infinities are the texts NaN, Infinity and -Infinity, so that null stays
"not available". Timestamps are ISO 8601, those with a time zone in UTC with Z. STRUCT and MAP are objects, LIST is an array, BLOB is
base64; what Arrow has no type for (INTERVAL, BIT, UHUGEINT, TIME WITH TIME ZONE and the like) is DuckDB's text.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from queries import arrow_values
from queries.printable import printable

COLUMNS_HEADER = "X-Columns"  # of an answer without rows: its columns, as JSON
FORMATS = ("table", "json", "csv", "parquet", "arrow")
CELL_CHARACTERS = 60
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # what a text begins with that spreadsheets run
_DAY_US = 86_400_000_000
ARROW_KEY = b"leverwatch.answer"


@dataclass(frozen=True)
class SqlResult:
    """The answer to one statement: columns as (name, DuckDB type), the rows, and whether more rows were there."""

    columns: list[tuple[str, str]]
    table: pa.Table
    truncated: bool
    elapsed_s: float

    @property
    def row_count(self) -> int:
        """The number of rows in the answer."""
        return int(self.table.num_rows)

    @property
    def note(self) -> str | None:
        """Why rows are missing and what to do; None where all are there."""
        if not self.truncated:
            return None
        return f"only the first {self.row_count:,} rows are here, as many as were asked for: name a higher limit, filter, or aggregate"

    def frame(self) -> pl.DataFrame:
        """The rows as a Polars frame; a repeated column name gets a number, and times with a 24:00:00 among them are texts."""
        frame = pl.from_arrow(_with_late_times_as_text(_unique(self.table)))
        if not isinstance(frame, pl.DataFrame):
            msg = f"a table was expected from Arrow, {type(frame).__name__} came"
            raise TypeError(msg)
        return frame

    def rows(self) -> list[list[Any]]:
        """The rows as JSON-able values."""
        values = [arrow_values.plain(column.combine_chunks()) for column in self.table.columns]
        return [list(row) for row in zip(*values, strict=True)]

    def json_able(self) -> dict[str, Any]:
        """The answer as the SQL endpoint gives it."""
        return {
            "columns": [{"name": name, "type": kind} for name, kind in self.columns],
            "rows": self.rows(),
            "row_count": self.row_count,
            "truncated": self.truncated,
            "elapsed_s": round(self.elapsed_s, 6),
            "note": self.note,
        }

    def csv(self) -> str:
        """A header and one line per row; null is empty, nested values are JSON text."""
        return _csv([name for name, _ in self.columns], ([_cell(value, "") for value in row] for row in self.rows()))

    def csv_for_spreadsheets(self) -> str:
        """The same; a text that a spreadsheet would run as a formula has an apostrophe before it."""
        listed = ([_harmless(value) if isinstance(value, str) else _cell(value, "") for value in row] for row in self.rows())
        return _csv([_harmless(name) for name, _ in self.columns], listed)

    def json_text(self) -> str:
        """`json_able` as text."""
        return json.dumps(self.json_able(), ensure_ascii=False, allow_nan=False)

    def parquet(self) -> bytes:
        """The rows as a zstd Parquet file; a repeated column name gets a number."""
        out = io.BytesIO()
        pq.write_table(_unique(self.table), out, compression="zstd")
        return out.getvalue()

    def arrow(self) -> bytes:
        """The rows as an Arrow IPC stream, what else is known in its schema's metadata; `from_arrow` reads it back."""
        said = json.dumps({"columns": self.columns, "truncated": self.truncated, "elapsed_s": self.elapsed_s})
        table = self.table.replace_schema_metadata({ARROW_KEY: said})
        out = io.BytesIO()
        with pa.ipc.new_stream(out, table.schema) as stream:
            stream.write_table(table)
        return out.getvalue()

    @classmethod
    def from_arrow(cls, content: bytes) -> SqlResult:
        """The answer that `arrow` wrote."""
        table = pa.ipc.open_stream(content).read_all()
        said = json.loads(table.schema.metadata[ARROW_KEY])
        columns = [(name, kind) for name, kind in said["columns"]]
        return cls(columns, table.replace_schema_metadata(None), said["truncated"], said["elapsed_s"])

    def text(self, *, is_rounded: bool = False) -> str:
        """The rows as an aligned table for a terminal, with a last line that says how many; `is_rounded`: four digits a number."""
        said = _rounded if is_rounded else _whole
        cells = [[_shortened(_cell(said(value), "null")) for value in row] for row in self.rows()]
        names = [_shortened(name) for name, _ in self.columns]
        widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
        right = [pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_decimal(t) for t in self.table.schema.types]
        lines = [_line(names, widths, right), _line(["-" * width for width in widths], widths, right)]
        lines += [_line(row, widths, right) for row in cells]
        count = f"({self.row_count} {'row' if self.row_count == 1 else 'rows'}{', truncated' if self.truncated else ''})"
        return "\n".join([*lines, count])


def _unique(table: pa.Table) -> pa.Table:
    taken: set[str] = set()
    names: list[str] = []
    for name in table.column_names:
        number, unique = 0, name
        while unique in taken:
            number += 1
            unique = f"{name}_{number}"
        taken.add(unique)
        names.append(unique)
    return table.rename_columns(names)


def _with_late_times_as_text(table: pa.Table) -> pa.Table:
    """Polars has no time of day after 23:59:59.999999 and would make it null."""
    for n, kind in enumerate(table.schema.types):
        if pa.types.is_time64(kind) and (pc.max(table.column(n).cast(pa.int64())).as_py() or 0) >= _DAY_US:
            texts = pa.array(arrow_values.plain(table.column(n).combine_chunks()), pa.string())
            table = table.set_column(n, table.column_names[n], texts)
    return table


def _csv(names: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return out.getvalue()


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULAS) else text


def _cell(value: Any, null: str) -> str:
    if value is None:
        return null
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def digits(number: float) -> str:
    """A number for reading: four digits, and never fewer than it has before the point."""
    return f"{number:.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def _rounded(value: Any) -> Any:
    return digits(value) if isinstance(value, float) else value


def _whole(value: Any) -> Any:
    return value


def _shortened(text: str) -> str:
    text = printable(text.replace("\n", "\\n").replace("\t", "\\t"))
    return text if len(text) <= CELL_CHARACTERS else text[: CELL_CHARACTERS - 1] + "…"


def _line(cells: list[str], widths: list[int], right: list[bool]) -> str:
    padded = [cell.rjust(width) if r else cell.ljust(width) for cell, width, r in zip(cells, widths, right, strict=True)]
    return "  ".join(padded).rstrip()
