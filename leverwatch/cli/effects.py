"""`leverwatch effects`: a lever's newest effect in each segment."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from leverwatch.cli import common
from leverwatch.connection import names


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
        print(f"leverwatch: there is no effect of {args.lever} yet: it takes blocks with both arms in a segment", file=sys.stderr)
    text = common.write(frame, args.format, args.out)
    if text:
        print(text, end="")
    return 0 if len(frame) else 3
