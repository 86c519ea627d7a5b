"""`leverwatch effects`: a lever's newest effect in each segment."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import polars as pl

from leverwatch.cli import common
from leverwatch.connection import names
from pipeline.segments import CELL_SEGMENT_KEYS

UNSHOWN = ("lever", "segment", "method", "evidence_below", "evidence_above")  # the same in every row, or in columns of its own


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    told = "a lever's newest effect per segment and metric, treated against control, with its interval"
    parser = subparsers.add_parser("effects", help=told, description=told)
    common.add_data(parser)
    parser.add_argument("--lever", required=True, metavar="L", help="such as speculation")
    parser.add_argument("--by", default="", metavar="KEY,...", help="only segments that have these keys, such as model")
    parser.add_argument("--format", choices=("table", "json", "csv", "parquet"), default="table")
    parser.add_argument("--out", metavar="FILE", help="write there instead of to standard output")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints or writes the effects; 3 where there are none yet."""
    with common.connection(args) as connection:
        frame = connection.effects(args.lever, names(args.by) or ())
    if frame.is_empty():
        having = f" in a segment with {args.by}" if args.by else ""
        print(f"leverwatch: there is no effect of {args.lever}{having} yet: it takes blocks with both arms in a segment", file=sys.stderr)
    text = common.write(shown(frame) if args.format == "table" else frame, args.format, args.out)
    if text:
        print(text, end="")
    return 0 if len(frame) else 3


def shown(frame: pl.DataFrame) -> pl.DataFrame:
    """The effects for a terminal: a column for each key of a segment, four digits, and no column that says nothing."""
    segments = [json.loads(text) for text in frame["segment"]]
    keys = [pl.Series(key, [segment.get(key) for segment in segments], pl.String) for key in CELL_SEGMENT_KEYS]
    whole = pl.DataFrame(keys).hstack(frame.drop(UNSHOWN)).with_columns(pl.selectors.float().round_sig_figs(4))
    return whole.select(name for name in whole.columns if whole[name].null_count() < len(whole) or whole.is_empty())
