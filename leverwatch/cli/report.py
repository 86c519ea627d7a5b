"""`leverwatch report`: metrics per segment."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import polars as pl

from leverwatch.cli import answered, common, doubted, dropped, missing
from leverwatch.connection import Connection, names
from queries.sandbox import SqlError

QUOTES_HINT = "a text stands in single quotes, such as \"model = 'chat-70b'\"; columns are those of `requests`"
SAID = ("_n", "_coverage", "_provenance")
NOTES = ("_totals", "_evidence")  # in words, beside a value: what a rate's totals are, why a label


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    parser = subparsers.add_parser(
        "report", help="metrics per segment, each with n, coverage and provenance; rates say what their totals are"
    )
    common.add_data(parser)
    parser.add_argument("--by", default="", metavar="COL,...", help="columns of requests, lever.<name>, arm.<name>, hour, day")
    parser.add_argument(
        "--metrics", default="", metavar="NAME,...", help="metric names (the table `metrics` lists them), or all (default: the core ones)"
    )
    common.add_period(parser, "everything stored")
    parser.add_argument(
        "--from",
        dest="source",
        choices=("auto", "requests", "cells"),
        default="auto",
        help="what answers: requests, or the cells kept of them; auto: requests where they are there and not too many",
    )
    parser.add_argument("--where", metavar="EXPR", help="a condition over columns of requests")
    common.add_format(parser, "table", "json", "csv", "parquet")
    common.add_out(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints or writes the report."""
    with common.connection(args) as connection:
        frame = _asked(connection, args)
        period = args.since, args.until, datetime.now(UTC)
        for told in (
            answered.told(connection, frame, args.source),
            dropped.told(connection, *period),
            doubted.told(connection, *period),
            missing.told(connection, frame, args.source),
        ):
            common.say(told)
    if args.format == "table":
        frame = long_form(frame, names(args.by) or ())
    text = common.write(frame, args.format, args.out)
    if text:
        print(text, end="")
    return 0


def _asked(connection: Connection, args: argparse.Namespace) -> pl.DataFrame:
    """The report. Where a condition is wrong, the condition is shown, and not the statement that was made around it."""
    try:
        return connection.report(args.by, args.metrics, args.since, args.until, args.where, args.source)
    except SqlError as error:
        if not args.where or error.code != "invalid":
            raise
        msg = f"--where {args.where!r}: {str(error).splitlines()[0]}; {QUOTES_HINT}"
        raise SqlError(msg, error.code) from error


def long_form(frame: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """A report for a terminal: one row per segment and value, with how it was got, since a wide row cannot be read there."""
    noted = any(name.endswith(NOTES) for name in frame.columns)
    values = [name for name in frame.columns if f"{_metric(name, frame.columns)}_n" in frame.columns and not _is_said(name, frame.columns)]
    rows = [
        frame.select(
            *keys,
            "requests",
            pl.lit(name).alias("metric"),
            _value(name, frame),
            *([_note(name, frame)] if noted else []),
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


def _value(name: str, frame: pl.DataFrame) -> pl.Expr:
    """A number; a label's word stands in the note."""
    number = pl.lit(None) if frame.schema[name] == pl.String else pl.col(name)
    return number.cast(pl.Float64).round_sig_figs(4).alias("value")


def _note(name: str, frame: pl.DataFrame) -> pl.Expr:
    said = [pl.col(f"{name}{kind}") for kind in NOTES if f"{name}{kind}" in frame.columns]
    word = [pl.col(name)] if frame.schema[name] == pl.String else []
    if f"{name}_totals" in frame.columns:
        said = [pl.concat_str(pl.lit("totals "), pl.col(f"{name}_totals"))]
    noted = pl.concat_str(*word, *said, separator=": ", ignore_nulls=True) if word or said else pl.lit(None, pl.String)
    return pl.when(noted != "").then(noted).alias("note")


def _is_said(name: str, columns: Sequence[str]) -> bool:
    """Whether a column says how another's value was got; `draft_coverage` is a metric with an n of its own."""
    return name.endswith((*SAID, *NOTES)) and f"{name}_n" not in columns


def _metric(name: str, columns: Sequence[str]) -> str:
    """The metric a value column belongs to: `ttft_s_p95` is one of `ttft_s`."""
    return name if f"{name}_n" in columns else name.rpartition("_")[0]
