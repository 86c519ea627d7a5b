"""`leverwatch effects`: a lever's newest effect in each segment, or where it stops paying."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import polars as pl

from leverwatch.cli import common
from leverwatch.connection import names
from pipeline.segments import CELL_SEGMENT_KEYS

# The same in every row, in columns of its own, or lists.
UNSHOWN = ("lever", "segment", "method", "evidence_below", "evidence_above")
UNSHOWN_BANDS = ("lever", "segment", "buckets", "blocks", "gains", "gains_low", "gains_high", "signs", "line_point")


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    told = "a lever's newest effect per segment and metric, treated against control, with its interval"
    parser = subparsers.add_parser("effects", help=told, description=told)
    common.add_data(parser)
    parser.add_argument("--lever", required=True, metavar="L", help="such as speculation")
    parser.add_argument("--by", default="", metavar="KEY,...", help="only segments that have these keys, such as model")
    told = "instead, up to which batch or length the lever pays, and from which it loses, or that it is not resolved yet"
    parser.add_argument("--break-even", action="store_true", help=told)
    parser.add_argument("--format", choices=("table", "json", "csv", "parquet"), default="table")
    parser.add_argument("--out", metavar="FILE", help="write there instead of to standard output")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints or writes the effects, or the break-evens; 3 where there are none yet."""
    with common.connection(args) as connection:
        ask = connection.break_even if args.break_even else connection.effects
        frame = ask(args.lever, names(args.by) or ())
    if frame.is_empty():
        having = f" in a segment with {args.by}" if args.by else ""
        what, of = ("break-even", "a bucket of a segment") if args.break_even else ("effect", "a segment")
        print(f"leverwatch: there is no {what} of {args.lever}{having} yet: it takes blocks with both arms in {of}", file=sys.stderr)
    unshown = UNSHOWN_BANDS if args.break_even else UNSHOWN
    text = common.write(shown(frame, unshown) if args.format == "table" else frame, args.format, args.out)
    if text:
        print(text, end="")
    return 0 if len(frame) else 3


def shown(frame: pl.DataFrame, unshown: Sequence[str] = UNSHOWN) -> pl.DataFrame:
    """Rows for a terminal: a column for each key of a segment, four digits, and no column that says nothing."""
    segments = [json.loads(text) for text in frame["segment"]]
    keys = [pl.Series(key, [segment.get(key) for segment in segments], pl.String) for key in CELL_SEGMENT_KEYS]
    whole = pl.DataFrame(keys).hstack(frame.drop(unshown, strict=False)).with_columns(pl.selectors.float().round_sig_figs(4))
    return whole.select(name for name in whole.columns if whole[name].null_count() < len(whole) or whole.is_empty())
