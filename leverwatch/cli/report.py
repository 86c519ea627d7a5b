"""`leverwatch report`: metrics per segment."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import polars as pl

from leverwatch.cli import common, doubted, dropped
from leverwatch.connection import Connection, names
from queries.sandbox import SqlError

QUOTES_HINT = "a text stands in single quotes, such as \"model = 'chat-70b'\"; columns are those of `requests`"
SAID = ("_n", "_coverage", "_provenance")


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    parser = subparsers.add_parser("report", help="metrics per segment, each with n, coverage and provenance")
    common.add_data(parser)
    parser.add_argument("--by", default="", metavar="COL,...", help="columns of requests, lever.<name>, arm.<name>, hour, day")
    parser.add_argument(
        "--metrics", default="", metavar="NAME,...", help="metric names (the table `metrics` lists them), or all; default: the core ones"
    )
    parser.add_argument("--since", metavar="T", help="ISO 8601 (no offset: UTC) or an age such as 90m, 24h, 7d; default: everything stored")
    parser.add_argument("--until", metavar="T", help="exclusive, as --since")
    parser.add_argument("--where", metavar="EXPR", help="a condition over columns of requests")
    parser.add_argument("--format", choices=("table", "json", "csv", "parquet"), default="table")
    parser.add_argument("--out", metavar="FILE", help="write there instead of to standard output")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints or writes the report."""
    with common.connection(args) as connection:
        frame = _asked(connection, args)
        period = args.since, args.until, datetime.now(UTC)
        for sentence in (*dropped.told(connection, *period), *doubted.told(connection, *period)):
            print(f"leverwatch: {sentence}", file=sys.stderr)
    if args.format == "table":
        frame = long_form(frame, names(args.by) or ())
    text = common.write(frame, args.format, args.out)
    if text:
        print(text, end="")
    return 0


def _asked(connection: Connection, args: argparse.Namespace) -> pl.DataFrame:
    """The report. Where a condition is wrong, the condition is shown, and not the statement that was made around it."""
    try:
        return connection.report(args.by, args.metrics, args.since, args.until, args.where)
    except SqlError as error:
        if not args.where or error.code != "invalid":
            raise
        msg = f"--where {args.where!r}: {str(error).splitlines()[0]}; {QUOTES_HINT}"
        raise SqlError(msg, error.code) from error


def long_form(frame: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """A report for a terminal: one row per segment and value, with how it was got, since a wide row cannot be read there."""
    values = [name for name in frame.columns if f"{_metric(name, frame.columns)}_n" in frame.columns and not name.endswith(SAID)]
    rows = [
        frame.select(
            *keys,
            "requests",
            pl.lit(name).alias("metric"),
            pl.col(name).cast(pl.Float64).round_sig_figs(4).alias("value"),
            *(pl.col(f"{_metric(name, frame.columns)}{said}").alias(said[1:]) for said in SAID),
        )
        for name in values
    ]
    if not rows:
        return frame
    long = pl.concat(rows)
    if not keys:
        return long
    order = frame.select(*keys).with_row_index("place")
    placed = long.join(order, on=list(keys), nulls_equal=True, maintain_order="left")
    return placed.sort("place", maintain_order=True).drop("place")


def _metric(name: str, columns: Sequence[str]) -> str:
    """The metric a value column belongs to: `ttft_s_p95` is one of `ttft_s`."""
    return name if f"{name}_n" in columns else name.rpartition("_")[0]
