"""`leverwatch policy list` and `show NAME`: the shipped policies and those of one's own folder, and where each is from."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import msgspec

from alerts.chain import Policy, PolicyError, kind_of
from alerts.levers import unknown
from leverwatch.cli import common
from leverwatch.config import read
from leverwatch.policy_sources import Source, sources


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the verbs `list` and `show`."""
    listing = verbs.add_parser("list", help="the shipped policies and one's own, and where each is from")
    listing.add_argument("--format", choices=("table", "json"), default="table", help="default: table")
    _add_folder(listing)
    listing.set_defaults(run=run_list)
    showing = verbs.add_parser("show", help="one policy, as its file")
    showing.add_argument("name", metavar="NAME")
    showing.add_argument("--format", choices=("toml", "json"), default="toml", help="json: every key, defaults included; default: toml")
    _add_folder(showing)
    showing.set_defaults(run=run_show)


def run_list(args: argparse.Namespace) -> int:
    """Prints a row a policy; gives 0."""
    rows = [_row(source) for source in _found(args)]
    if args.format == "json":
        print(json.dumps(rows, indent=2))
        return 0
    shown = [{**row, "triggers": _shown(row["triggers"])} for row in rows]
    heads = list(shown[0])
    widths = [max(len(head), *(len(str(row[head])) for row in shown)) for head in heads]
    for row in [dict(zip(heads, heads, strict=True)), *shown]:
        print("  ".join(str(row[head]).ljust(width) for head, width in zip(heads, widths, strict=True)).rstrip())
    return 0


def run_show(args: argparse.Namespace) -> int:
    """Prints the policy; raises PolicyError for a name that is not there."""
    found = {source.policy.name: source for source in _found(args)}
    if args.name not in found:
        raise PolicyError(unknown("policy", args.name, found))
    source = found[args.name]
    print(source.text if args.format == "toml" else json.dumps(msgspec.to_builtins(source.policy), indent=2) + "\n", end="")
    return 0


def _add_folder(parser: argparse.ArgumentParser) -> None:
    told = "one's own policies (default: [alerts] policies of --config, else of the data folder's leverwatch.toml)"
    parser.add_argument("--policies", metavar="DIR", help=told)
    parser.add_argument("--config", metavar="FILE", help="the configuration that names the folder")
    parser.add_argument("--data", metavar="DIR", help="the data folder (default: $LEVERWATCH_DATA, else ./leverwatch-data)")


def _found(args: argparse.Namespace) -> list[Source]:
    return sources(args.policies or read(Path(args.config) if args.config else None, common.folder(args)).alerts.policies)


def _row(source: Source) -> dict[str, Any]:
    policy = source.policy
    return {
        "policy": policy.name,
        "lever": policy.lever,
        "version": str(policy.version),
        "owner": policy.owner,
        "severity": policy.severity,
        "shadow": policy.shadow,
        "triggers": _triggers(policy),
        "from": source.origin,
    }


def _triggers(policy: Policy) -> list[dict[str, str]]:
    return [
        {"kind": kind_of(one), "metric": one.metric, "action": one.action, "severity": one.severity or policy.severity}
        for one in policy.disable_when
    ]


def _shown(triggers: list[dict[str, str]]) -> str:
    """`4: disable, shorten`."""
    return f"{len(triggers)}: {', '.join(dict.fromkeys(one['action'] for one in triggers))}"
