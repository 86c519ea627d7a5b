"""`leverwatch policy due`: which policies have to be judged again, since a lever that shares their budgets was set otherwise."""

from __future__ import annotations

import argparse
import sys

from leverwatch.cli import common


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the verb `due`."""
    told = "which policies have to be judged again, since a lever that shares their budgets was set otherwise"
    parser = verbs.add_parser("due", help=told)
    common.add_data(parser)
    parser.add_argument("--lever", metavar="L", help="only those that this lever's change asks for")
    parser.add_argument("--all", action="store_true", help="also those that were judged since, and those that nobody will judge any more")
    common.add_format(parser, "table", "json", "csv")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints a row per change and policy; gives 0, whether or not there is any."""
    with common.connection(args) as connection:
        frame = connection.revalidations(args.lever, everything=args.all)
    if frame.is_empty():
        print("leverwatch: no policy waits to be judged again", file=sys.stderr)
    if len(frame) or args.format != "table":
        print(common.write(frame, args.format, None), end="")
    return 0
