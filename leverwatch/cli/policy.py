"""`leverwatch policy list | show NAME | check FILE...`: the shipped policies, and whether a policy file can be used."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from alerts.policy import PolicyError, load, shipped, shipped_text


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command `policy`."""
    parser = subparsers.add_parser("policy", help="list, show and check policies", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    listing = verbs.add_parser("list", help="the shipped policies")
    listing.add_argument("--format", choices=("table", "json"), default="table", help="default: table")
    showing = verbs.add_parser("show", help="one shipped policy, as its file")
    showing.add_argument("name", metavar="NAME")
    checking = verbs.add_parser("check", help="whether policy files can be used; status 1 when one cannot")
    checking.add_argument("files", metavar="FILE", nargs="+", type=Path)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Does the verb; gives the exit status: 0, 1 when a policy is refused, 2 for a name or file that is not there."""
    if args.verb == "show":
        return _show(args.name)
    return _check(args.files) if args.verb == "check" else _list(args.format)


def _list(form: str) -> int:
    rows = [{"policy": policy.name, "lever": policy.lever, "version": str(policy.version), "owner": policy.owner} for policy in shipped()]
    if form == "json":
        print(json.dumps(rows, indent=2))
        return 0
    heads = list(rows[0])
    widths = [max(len(head), *(len(row[head]) for row in rows)) for head in heads]
    for row in [dict(zip(heads, heads, strict=True)), *rows]:
        print("  ".join(row[head].ljust(width) for head, width in zip(heads, widths, strict=True)).rstrip())
    return 0


def _show(name: str) -> int:
    try:
        print(shipped_text(name), end="")
    except KeyError as error:
        print(error.args[0], file=sys.stderr)
        return 2
    return 0


def _check(files: list[Path]) -> int:
    status = 0
    for path in files:
        if not path.is_file():
            print(f"{path}: is not a file; takes a policy's TOML file", file=sys.stderr)
            status = 2
            continue
        try:
            policy = load(path)
            print(f"{path}: ok: {policy.name}, lever {policy.lever}, version {policy.version}")
        except PolicyError as error:
            print(error, file=sys.stderr)
            status = max(status, 1)
    return status
