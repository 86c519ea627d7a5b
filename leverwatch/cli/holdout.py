"""`leverwatch holdout`: the smallest control arm that would find a change of a lever's effect, in requests and in hours."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from leverwatch.cli import common
from leverwatch.cli.effects import shown
from leverwatch.connection import names
from leverwatch.lever_questions import CHANGE, METRIC, METRICS, WITHIN_HOURS, hours

UNSHOWN = ("lever", "segment", "change", "within_hours")


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    told = "the smallest share of control that would find a change in time, in requests and hours, per segment and in all"
    parser = subparsers.add_parser("holdout", help=told)
    common.add_data(parser)
    parser.add_argument("--lever", required=True, metavar="L", help="such as speculation; it needs no control arm yet")
    told = f"the gain or loss to be found, as a ratio (default: {CHANGE:g})"
    parser.add_argument("--change", type=float, default=CHANGE, metavar="RATIO", help=told)
    told = f"in which time nine answers of ten are to come, such as 12h or 7d (default: {WITHIN_HOURS:g}h)"
    parser.add_argument("--within", default=f"{WITHIN_HOURS:g}h", metavar="AGE", help=told)
    parser.add_argument(
        "--by", default="", metavar="KEY,...", help="a row per group of these keys, such as model, in the place of segments"
    )
    parser.add_argument("--metric", choices=METRICS, default=METRIC, help=f"what is to change (default: {METRIC})")
    common.add_format(parser, "table", "json", "csv", "parquet")
    common.add_out(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints or writes the advice; 1 where no share answers in time for all traffic, 3 where nothing is known of the lever."""
    with common.connection(args) as connection:
        frame = connection.holdout(args.lever, args.change, hours(args.within), names(args.by) or (), args.metric)
    if frame.is_empty():
        print(f"leverwatch: nothing is known of {args.lever} yet: it takes requests that say that it is on", file=sys.stderr)
    text = common.write(shown(frame, UNSHOWN) if args.format == "table" else frame, args.format, args.out)
    if text:
        print(text, end="")
    if frame.is_empty():
        return 3
    return 0 if frame.filter(segment="{}")["is_reached"].all() else 1
