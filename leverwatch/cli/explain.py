"""`leverwatch explain`: what tells two sets of requests apart."""

from __future__ import annotations

import argparse
from typing import Any

import polars as pl

from leverwatch.cli import common
from queries.explain import LIMIT_KEYS

SETS = (
    "a condition over columns of requests, such as \"outcome = 'error'\", or slow (end-to-end time above its 95th percentile), "
    "slow:<column>, treated:<lever>, control:<lever>, disabled_in_place:<lever>"
)
SHOWN = (
    "key", "condition", "share_a", "share_b", "mean_gap_low", "mean_gap_high", "median_a", "median_b", "median_gap_low", "median_gap_high",
    "p95_a", "p95_b", "p95_gap_low", "p95_gap_high", "distance", "chance", "n_a", "n_b", "coverage_a", "coverage_b", "note",
)  # fmt: skip


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    told = "which keys tell two sets of requests apart, ranked: the share of each set that has what differs most, and what is chance"
    parser = subparsers.add_parser("explain", help=told)
    common.add_data(parser)
    parser.add_argument("a", metavar="A", help=SETS)
    parser.add_argument("b", metavar="B", nargs="?", help="as A (default: the rest, where A is known not to hold)")
    parser.add_argument("--by", default="", metavar="COL,...", help="the keys to compare, as of report (default: every one)")
    common.add_period(parser, "everything stored")
    parser.add_argument("--where", metavar="EXPR", help="a condition that both sets are held to")
    parser.add_argument("--limit", type=int, default=LIMIT_KEYS, metavar="KEYS", help=f"at most so many keys (default: {LIMIT_KEYS})")
    common.add_format(parser, "table", "json", "csv", "parquet")
    common.add_out(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints or writes what differs; says on standard error how large the sets are and whether all of them was looked at."""
    with common.connection(args) as connection:
        frame = connection.explain(args.a, args.b, args.since, args.until, args.where, args.by, args.limit)
    common.say([sizes_in_words(frame), *frame["times"].drop_nulls().head(1)])
    text = common.write(rounded(frame) if args.format == "table" else frame, args.format, args.out)
    if text:
        print(text, end="")
    return 0


def sizes_in_words(frame: pl.DataFrame) -> str:
    """How many requests the sets hold, and whether all were looked at."""
    if frame.is_empty():
        return "none of the keys is known of any request"
    first = frame.row(0, named=True)
    whole = f"A has {first['requests_a']:,} requests, B {first['requests_b']:,}"
    return f"{whole}; of the larger a part was looked at, chosen by request_id" if first["sampled"] else whole


def rounded(frame: pl.DataFrame) -> pl.DataFrame:
    """The answer for a terminal: fewer columns and digits."""
    known = [name for name in SHOWN if "_gap_" not in name or frame[name].null_count() < len(frame)]
    return frame.select(known).with_columns(pl.selectors.float().round_sig_figs(3))
