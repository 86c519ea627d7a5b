"""`leverwatch switchback plan | check FILE | registry FILE`: a schedule that switches a lever on and off, its order drawn."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from leverwatch.cli import common
from pipeline import schedule, schedule_file
from pipeline.schedule import Plan
from pipeline.schedule_rows import ScheduleError
from pipeline.segments import LEVERS

MOST_HOURS = 2_000  # twelve weeks
EARLIEST_YEAR, LATEST_YEAR = 2000, 2200


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command `switchback`."""
    told = "plan and check a schedule that switches a lever on and off in an order drawn by chance"
    parser = subparsers.add_parser("switchback", help=told)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    planning = verbs.add_parser("plan", help="a new schedule, as CSV")
    planning.add_argument("--lever", required=True, choices=LEVERS, metavar="L", help="such as speculation")
    planning.add_argument("--replica", required=True, action="append", metavar="NAME", help="once per replica that is to switch")
    planning.add_argument("--from", dest="since", metavar="T", help="when it begins, ISO 8601 on a whole 5 minutes (default: in an hour)")
    planning.add_argument("--hours", type=float, default=24.0, metavar="HOURS", help="how long it lasts (default: 24)")
    planning.add_argument("--period-s", type=int, default=900, metavar="SECONDS", help="how long a lever stays as it is (default: 900)")
    planning.add_argument(
        "--burn-in-s", type=int, default=300, metavar="SECONDS", help="how much of a period's beginning does not count (default: 300)"
    )
    planning.add_argument("--tail-s", type=int, default=0, metavar="SECONDS", help="how much of its end does not count (default: 0)")
    planning.add_argument("--without", choices=("control", "disabled_in_place"), default="control", help="the other arm (default: control)")
    planning.add_argument("--seed", type=int, required=True, metavar="N", help="draws the order: the same seed gives the same schedule")
    planning.add_argument("--out", metavar="FILE", type=Path, help="write there instead of to standard output")
    checking = verbs.add_parser("check", help="whether a schedule can be used and tells a lever's effect; status 1 when it does not")
    checking.add_argument("file", metavar="FILE", type=Path, help="a schedule, as `plan` writes it")
    common.add_format(checking, "table", "json")
    telling = verbs.add_parser("registry", help="the lines of levers.csv that give requests of measured times their arm")
    telling.add_argument("file", metavar="FILE", type=Path, help="a schedule, as `plan` writes it")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Does the verb; gives the exit status: 0, or 1 where a schedule cannot tell the lever's effect."""
    if args.verb == "plan":
        return _plan(args, datetime.now(UTC))
    if args.verb == "check":
        return _check(args.file, args.format)
    print(schedule_file.registry_text(schedule_file.read(args.file)), end="")
    return 0


def _plan(args: argparse.Namespace, now: datetime) -> int:
    if not 0 < args.hours <= MOST_HOURS:
        msg = f"--hours {args.hours:g}: a number above 0 and up to {MOST_HOURS} is taken"
        raise ScheduleError(msg)
    if args.seed < 0:
        msg = f"--seed {args.seed}: a whole number from 0 on is taken"
        raise ScheduleError(msg)
    pairs = int(args.hours * 3600 // (2 * args.period_s)) if args.period_s > 0 else 1
    if pairs < 1:
        msg = f"--hours {args.hours:g}: that holds no pair of periods of {args.period_s} s"
        raise ScheduleError(msg)
    since = _instant(args.since) if args.since else _next_block(now + timedelta(hours=1))
    plan = Plan(args.period_s, args.burn_in_s, args.tail_s)
    text = schedule_file.text(schedule.planned(args.lever, args.replica, since, pairs, plan, args.seed, args.without))
    if args.out:
        args.out.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    return 0


def _check(path: Path, form: str) -> int:
    periods = schedule_file.read(path)
    found = schedule.objections(periods)
    if form == "json":
        print(json.dumps({"periods": len(periods), "objections": found}, indent=2))
    else:
        print(f"{path}: {len(periods)} periods")
        for objection in found:
            print(f"leverwatch: {objection}", file=sys.stderr)
    return 1 if found else 0


def _instant(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        msg = f"--from {text!r}: ISO 8601 such as 2026-11-29T12:00:00Z is taken"
        raise ScheduleError(msg) from error
    if not EARLIEST_YEAR <= moment.year <= LATEST_YEAR:
        msg = f"--from {text!r}: a year from {EARLIEST_YEAR} to {LATEST_YEAR} is taken"
        raise ScheduleError(msg)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _next_block(moment: datetime) -> datetime:
    return datetime.fromtimestamp(-(-moment.timestamp() // schedule.BLOCK_S) * schedule.BLOCK_S, UTC)
