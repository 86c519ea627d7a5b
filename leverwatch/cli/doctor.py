"""`leverwatch doctor`: what can and cannot be known of each replica, why, and what brings it."""

from __future__ import annotations

import argparse
import json
from typing import Any

from leverwatch import doctor_text
from leverwatch.cli import common
from queries.printable import printable


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    told = "what is known of each replica's requests, why the rest is missing and what brings it; status 1 where a core metric is missing"
    parser = subparsers.add_parser("doctor", help=told)
    common.add_data(parser)
    parser.add_argument(
        "--since",
        metavar="T",
        help="the period: an age before the newest event, such as 15m, or ISO 8601 (default: 1h, or the newest million requests)",
    )
    common.add_format(parser, "table", "json")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the diagnosis: 0 each core metric can be computed where it applies, 1 one cannot, 3 there are no requests to tell by."""
    with common.connection(args) as connection:
        told = connection.doctor(args.since)
    print(
        json.dumps(told, indent=2) if args.format == "json" else printable(doctor_text.text(told)),
        end="\n" if args.format == "json" else "",
    )
    status: int = told["status"]
    return status
