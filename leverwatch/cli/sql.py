"""`leverwatch sql`: one read-only statement over the store."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from leverwatch.cli import common
from queries.results import SqlResult


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    parser = subparsers.add_parser("sql", help="one read-only statement: SELECT, WITH, FROM, VALUES, DESCRIBE, SUMMARIZE, SHOW, EXPLAIN")
    common.add_data(parser)
    parser.add_argument("statement", metavar="STATEMENT", help="in quotes, as one word of the shell")
    common.add_format(parser, "table", "json", "csv", "parquet", "arrow")
    parser.add_argument("--limit", type=int, metavar="ROWS", help="at most so many rows (default: 10,000)")
    common.add_out(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints or writes the rows; says on standard error when they were cut."""
    with common.connection(args) as connection:
        answer = connection.ask(args.statement, limit_rows=args.limit)
    return show(answer, args.format, args.out)


def show(answer: SqlResult, fmt: str, out: str | None, *, is_rounded: bool = False) -> int:
    """Prints an answer in a format, or writes it to a file; says on standard error when rows were cut. A table may be rounded."""
    content = answer.text(is_rounded=is_rounded) if fmt == "table" else _written(answer, fmt)
    if out:
        Path(out).write_bytes(content if isinstance(content, bytes) else content.encode())
    elif isinstance(content, bytes):
        sys.stdout.buffer.write(content)
    else:
        sys.stdout.write(content if content.endswith("\n") else content + "\n")
    if answer.truncated:
        print(f"leverwatch: truncated after {answer.row_count} rows; --limit takes more", file=sys.stderr)
    return 0


def _written(answer: SqlResult, fmt: str) -> str | bytes:
    if fmt in ("parquet", "arrow"):
        return answer.parquet() if fmt == "parquet" else answer.arrow()
    if fmt == "json":
        return answer.json_text()
    return answer.csv()
