"""`leverwatch deliveries`: what was sent to whom and what came of it; what was given up, sent again."""

from __future__ import annotations

import argparse
import json
from typing import Any

import polars as pl

from leverwatch.cli import common

SHOWN = ("delivery_id", "receiver", "attempt", "outcome", "status_code", "started_at", "next_attempt_at", "error")
TIMES = ("started_at", "next_attempt_at")
LIMIT_ERROR = 44  # characters: the table stays within 170; JSON has it all


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    told = "attempts to send notices, newest first; status 1 where --failed finds notices that were given up"
    parser = subparsers.add_parser("deliveries", help=told)
    common.add_data(parser)
    parser.add_argument("--receiver", metavar="NAME", help="only those to one; with --replay all: what is sent again")
    parser.add_argument("--failed", action="store_true", help="only notices that were given up")
    parser.add_argument(
        "--replay", metavar="ID", help="send the notice of a delivery again, or with `all` all that were given up for --receiver"
    )
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="the most rows (default: 50)")
    common.add_format(parser, "table", "json")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints deliveries, or replays; gives the exit status."""
    if args.replay == "all" and not args.receiver:
        msg = "--replay all needs --receiver NAME"
        raise OSError(msg)
    with common.connection(args) as connection:
        notices = connection.notices()
        if args.replay == "all":
            done = notices.replay_all(args.receiver)
            left = f"{done['superseded']} are not: it was told something newer"
            common.say([f"{done['replayed']} notices are queued for {args.receiver} again{_held(done)}; {left}"])
            return 0
        if args.replay:
            row = notices.replay(args.replay)
            common.say([f"the notice {row['webhook_id']} is queued for {row['receiver']} again{_held(row)}"])
            return 0
        rows = notices.deliveries(args.receiver, "failed" if args.failed else None, args.limit)
    _print(rows, args.format, "no notice was given up" if args.failed else "nothing was sent yet")
    return 1 if args.failed and rows else 0


def _held(row: dict[str, Any]) -> str:
    return f", and goes out after {row['held_until'][:19]}Z: it asked for nothing before" if row.get("held_until") else ""


def _print(rows: list[dict[str, Any]], form: str, none: str) -> None:
    if form == "json":
        print(json.dumps(rows, indent=2))
    elif rows:
        print(common.write(pl.DataFrame([_shown(row) for row in rows], infer_schema_length=None), "table", None), end="")
    else:
        common.say([none])


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """A row as a terminal gets it: times to the second, an error by its beginning."""
    shown = {name: row[name] for name in SHOWN}
    if row["outcome"] in ("pending", "retrying") and row.get("held_until"):
        shown["next_attempt_at"] = max(row["next_attempt_at"], row["held_until"])
    shown |= {name: shown[name][:19] + "Z" for name in TIMES if shown[name]}
    error = row["error"] or ""
    return shown | {"error": error if len(error) <= LIMIT_ERROR else error[: LIMIT_ERROR - 1] + "…"}
