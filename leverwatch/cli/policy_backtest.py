"""`leverwatch policy backtest FILE...`: what policies would have said of the stored history; nothing is written, nobody is told."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from alerts.backtest_labels import LabelError, labels, marks, missed
from alerts.backtest_missed import unjudged
from alerts.backtest_told import Backtest
from leverwatch.cli import common, policy_backtest_text
from leverwatch.policy_rows import change_rows
from queries.printable import printable


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the verb `backtest`."""
    told = "what policies would have said of the stored history: when, on whom, how early, for how long, and what they cannot tell"
    parser = verbs.add_parser("backtest", help=told, description=f"{told}. Policies given together are judged together.")
    common.add_data(parser)
    parser.add_argument("files", metavar="FILE", nargs="+", help="a policy's TOML file, or the name of a shipped policy")
    ages = "ISO 8601 (no offset: UTC), or an age such as 7d before the newest effect"
    parser.add_argument("--since", metavar="T", help=f"{ages} (default: all of history)")
    parser.add_argument("--until", metavar="T", help="as --since (default: the newest effect)")
    parser.add_argument("--labels", metavar="FILE", help="CSV: lever,segment,from,until,note: when a lever did harm; all else is false")
    parser.add_argument("--fail-on-fire", action="store_true", help="status 1 where anything fired, false or not")
    parser.add_argument("--fail-on-miss", action="store_true", help="status 1 where a label was met by no recommendation")
    common.add_format(parser, "table", "json", told="json: a list, one object a change of verdict")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints what the policies would have said; gives 0, 1 where one fired falsely (or as asked), 3 without history to judge."""
    given = labels(_read(args.labels), args.labels) if args.labels else None
    with common.connection(args) as connection:
        found = connection.backtest(args.files, args.since, args.until)
    if not found.streams:
        print("leverwatch: there is no history of these policies' levers in this period: nothing was judged", file=sys.stderr)
    seen = marks(found, given)
    unmet = missed(found, given or ())
    unknown = unjudged(found, given or ()) if found.streams else []
    told = [label for label in unmet if label not in unknown]
    if args.format == "json":
        print(json.dumps(change_rows(found), indent=2, ensure_ascii=False))
        common.say([*policy_backtest_text.missed(found, told, unknown), *found.notes])
    elif found.streams:
        print(printable(policy_backtest_text.text(found, seen, told, unknown)), end="")
    failed = any(mark.is_false for mark in seen) or (args.fail_on_fire and seen) or (args.fail_on_miss and unmet)
    return 3 if not _is_judged(found) else 1 if failed else 0


def _is_judged(found: Backtest) -> bool:
    return bool(found.streams)


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        msg = f"{path}: is no text in UTF-8: {error}"
        raise LabelError(msg) from error
