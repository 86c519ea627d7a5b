"""`leverwatch silence add | snooze FLIP | list | end ID`: who is not told of what, for how long; judging goes on."""

from __future__ import annotations

import argparse
import getpass
import json
import re
from typing import Any

import polars as pl

from leverwatch.cli import common

AGES_S = {"m": 60, "h": 3600, "d": 86400}
SHOWN = ("silence_id", "state", "matches", "starts_at", "ends_at", "created_by", "comment")
SHORT_ID = 12  # characters of an id in the table: `end` takes as many, and JSON has all
MATCHERS = ("lever", "policy", "segment", "receiver", "flip_id")


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    told = "silences: what recommends is held back from receivers while one lasts; judging goes on"
    parser = subparsers.add_parser("silence", help=told)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    adding = verbs.add_parser("add", help="begin one; what is named has to match, and words may hold * and ?")
    adding.add_argument("--lever", metavar="L", help="such as speculation; '*' is all")
    adding.add_argument("--policy", metavar="NAME", help="such as speculation-net-itl")
    adding.add_argument("--segment", metavar="KEY=VALUE", action="append", default=[], help="such as model=llama-*; once per key")
    adding.add_argument("--receiver", metavar="NAME", help="one that notices are not sent to (default: all)")
    adding.add_argument("--for", dest="for_s", metavar="TIME", type=_seconds, help="how long: 90m, 8h, 7d; at most 30d")
    adding.add_argument("--until", metavar="T", help="or when it ends, ISO 8601")
    adding.add_argument("--from", dest="since", metavar="T", help="when it begins, ISO 8601 (default: now)")
    snoozing = verbs.add_parser("snooze", help="hold one flip back from those who have not got it yet")
    snoozing.add_argument("flip_id", metavar="FLIP", help="its id, or the beginning of it: `flip_id` of a notice")
    snoozing.add_argument("--for", dest="for_s", metavar="TIME", type=_seconds, required=True, help="how long: 90m, 8h, 7d; at most 30d")
    for verb in (adding, snoozing):
        verb.add_argument("--by", default=_user(), metavar="NAME", help="who asks for it (default: this user)")
        verb.add_argument("--comment", default="", metavar="TEXT", help="why")
    listing = verbs.add_parser("list", help="list those that last or are to come")
    listing.add_argument("--all", action="store_true", help="ended ones too")
    ending = verbs.add_parser("end", help="end one now")
    ending.add_argument("silence_id", metavar="ID", help="as `silence list` shows it, or the beginning of it")
    for verb in (adding, snoozing, listing, ending):
        common.add_data(verb)
        common.add_format(verb, "table", "json")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Does the verb and prints the silences that it is about."""
    with common.connection(args) as connection:
        notices = connection.notices()
        if args.verb == "add":
            rows = [notices.silence(_asked(args))]
        elif args.verb == "snooze":
            rows = [notices.snooze(args.flip_id, {"for_s": args.for_s, "created_by": args.by, "comment": args.comment})]
        elif args.verb == "end":
            rows = [notices.end_silence(args.silence_id)]
        else:
            rows = [row for row in notices.silences(limit=1000) if args.all or row["state"] != "ended"]
    if args.format == "json":
        print(json.dumps(rows, indent=2))
    elif rows:
        print(common.write(_table(rows), "table", None), end="")
    else:
        common.say(["there is no silence"])
    common.say(note for row in rows for note in row.get("notes", ()))
    return 0


def _user() -> str:
    """The user of this process; empty where the machine knows no name for it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _asked(args: argparse.Namespace) -> dict[str, Any]:
    segment = dict(_pair(text) for text in args.segment)
    asked = {"lever": args.lever, "policy": args.policy, "segment": segment or None, "receiver": args.receiver}
    asked |= {"for_s": args.for_s, "ends_at": _instant(args.until), "starts_at": _instant(args.since)}
    return {name: value for name, value in asked.items() if value is not None} | {"created_by": args.by, "comment": args.comment}


def _table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    said = [row | {"matches": " ".join(_matchers(row))} for row in rows]
    return pl.DataFrame([{name: row[name] for name in SHOWN} | {"silence_id": row["silence_id"][:SHORT_ID]} for row in said])


def _matchers(row: dict[str, Any]) -> list[str]:
    named = [f"{name}={row[name]}" for name in MATCHERS if name != "segment" and row[name]]
    return named + [f"{key}={value}" for key, value in (row["segment"] or {}).items()]


def _pair(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not (key and sign and value):
        msg = f"--segment {text!r}: KEY=VALUE is taken, such as model=llama-*"
        raise OSError(msg)
    return key, value


def _seconds(text: str) -> float:
    found = re.fullmatch(r"([1-9]\d{0,5})([mhd])", text.strip())
    if not found:
        msg = f"{text!r}: minutes, hours or days such as 90m, 8h, 7d are taken"
        raise argparse.ArgumentTypeError(msg)
    return float(int(found[1]) * AGES_S[found[2]])


def _instant(text: str | None) -> str | None:
    """A time as JSON carries it; without an offset it is UTC."""
    return text if text is None or re.search(r"(Z|[+-]\d\d:?\d\d)$", text) else f"{text}Z"
