"""`leverwatch report`: metrics per segment."""

from __future__ import annotations

import argparse
from typing import Any

from leverwatch.cli import common


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    parser = subparsers.add_parser("report", help="metrics per segment, each with n, coverage and provenance")
    common.add_data(parser)
    parser.add_argument("--by", default="", metavar="COL,...", help="columns of requests, lever.<name>, arm.<name>, hour, day")
    parser.add_argument("--metrics", default="", metavar="NAME,...", help="metric names, or all (default: the core ones)")
    parser.add_argument("--since", metavar="T", help="ISO 8601 (no offset: UTC) or an age such as 90m, 24h, 7d")
    parser.add_argument("--until", metavar="T", help="exclusive, as --since")
    parser.add_argument("--where", metavar="EXPR", help="a condition over columns of requests")
    parser.add_argument("--format", choices=("table", "json", "csv", "parquet"), default="table")
    parser.add_argument("--out", metavar="FILE", help="write there instead of to standard output")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints or writes the report."""
    with common.connection(args) as connection:
        frame = connection.report(_names(args.by) or (), _names(args.metrics), args.since, args.until, args.where)
    text = common.write(frame, args.format, args.out)
    if text:
        print(text, end="")
    return 0


def _names(text: str) -> tuple[str, ...] | None:
    return tuple(name.strip() for name in text.split(",") if name.strip()) or None
