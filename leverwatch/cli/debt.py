"""`leverwatch debt`: what was recommended off and went on all the same, and what that cost."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from leverwatch.cli import common
from leverwatch.cli.effects import shown

UNSHOWN = ("segment", "lever", "severity", "since", "until", "treated_s", "tokens")
TOLD = (
    "stood_s: seconds for which it was recommended off; requests: of treated traffic meanwhile; lost_s: their time above control's level;",
    "compared_share: of these requests, the share with a control beside them. --format json has every column.",
)


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    told = "per policy and segment for how long a lever was recommended off while its traffic went on, and the request time lost by that"
    parser = subparsers.add_parser("debt", help=told)
    common.add_data(parser)
    common.add_period(parser, "a week before --until", "the end of the newest block")
    common.add_format(parser, "table", "json", "csv")
    common.add_out(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints or writes the debt; gives 0, whether or not there is any."""
    with common.connection(args) as connection:
        frame = connection.debt(args.since, args.until)
    if frame.is_empty():
        print("leverwatch: no lever that was recommended off went on in that time", file=sys.stderr)
    elif args.format == "table":
        common.say(TOLD)
    text = common.write(shown(frame, UNSHOWN) if args.format == "table" else frame, args.format, args.out)
    if text:
        print(text, end="")
    return 0
