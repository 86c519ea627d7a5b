"""`leverwatch policy check FILE...`: whether policy files can be used."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from alerts.policy import PolicyError, load


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the verb `check`."""
    parser = verbs.add_parser("check", help="whether policy files can be used; status 1 when one cannot")
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Says of each file whether it can be used; gives 1 when one is refused, 2 where one is not there."""
    status = 0
    for path in args.files:
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
