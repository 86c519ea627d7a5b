"""`leverwatch policy list` and `show NAME`: the shipped policies and those of one's own folder, or what a server judges by."""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path
from typing import Any

import msgspec

from alerts import policy
from alerts.chain import PolicyError
from alerts.levers import unknown
from leverwatch.cli import common
from leverwatch.policy_casing import cases_text
from leverwatch.policy_rows import policy_row
from queries.printable import printable


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the verbs `list` and `show`."""
    listing = verbs.add_parser("list", help="the shipped policies and one's own, and where each is from; of a server what it judges by")
    common.add_format(listing, "table", "json")
    _add_folder(listing)
    listing.set_defaults(run=run_list)
    showing = verbs.add_parser("show", help="one policy, as its file")
    showing.add_argument("name", metavar="NAME", help="as `policy list` names it")
    common.add_format(showing, "toml", "json", told="json: every key, defaults included")
    showing.add_argument("--cases", action="store_true", help="the cases beside it, which `leverwatch policy test` plays")
    _add_folder(showing)
    showing.set_defaults(run=run_show)


def run_list(args: argparse.Namespace) -> int:
    """Prints a row a policy; gives 0."""
    rows = [{name: value for name, value in row.items() if name != "text"} for row in _found(args)]
    if args.format == "json":
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return 0
    shown = [{**row, "triggers": _shown(row["triggers"])} for row in rows]
    heads = list(shown[0])
    widths = [max(len(head), *(len(str(row[head])) for row in shown)) for head in heads]
    for row in [dict(zip(heads, heads, strict=True)), *shown]:
        print(printable("  ".join(str(row[head]).ljust(width) for head, width in zip(heads, widths, strict=True)).rstrip()))
    return 0


def run_show(args: argparse.Namespace) -> int:
    """Prints the policy, or its cases; raises PolicyError for a name that is not there."""
    found = {row["policy"]: row for row in _found(args)}
    if args.name not in found:
        raise PolicyError(unknown("policy", args.name, found))
    row = found[args.name]
    if args.cases:
        print(cases_text(args.name, row["from"]), end="")
    elif args.format == "toml":
        print(row["text"], end="")
    else:
        print(json.dumps(msgspec.to_builtins(policy.parse(row["text"], row["from"])), indent=2, ensure_ascii=False))
    return 0


def _add_folder(parser: argparse.ArgumentParser) -> None:
    told = "one's own policies (default: [alerts] policies of --config, else of the data folder's leverwatch.toml)"
    common.add_data(parser)
    parser.add_argument("--policies", metavar="DIR", help=told)
    parser.add_argument("--config", metavar="FILE", help="the configuration that names the folder")


def _found(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows with their texts: of a server that is named, else of files."""
    if args.url:
        with common.connection(args) as connection:
            return connection.policies()
    # Not imported above: the other verbs need no configuration, which brings the decoder and takes most of a second.
    read = importlib.import_module("leverwatch.config").read
    sources = importlib.import_module("leverwatch.policy_sources").sources
    folder = args.policies or read(Path(args.config) if args.config else None, common.folder(args)).alerts.policies
    return [{**policy_row(source.policy, source.origin), "text": source.text} for source in sources(folder)]


def _shown(triggers: list[dict[str, str]]) -> str:
    """`4: disable, shorten`."""
    return f"{len(triggers)}: {', '.join(dict.fromkeys(one['action'] for one in triggers))}"
