"""`leverwatch policy check FILE...`: whether policy files, or all policies of a folder, can be used."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from alerts.policy import PolicyError, is_policy, load

CASES = ".cases.toml"


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the verb `check`."""
    told = "whether policy files can be used; status 1 when one cannot, 2 where one is not there"
    parser = verbs.add_parser("check", help=told)
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="a policy's TOML file, or a folder of such files")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Says of each file whether it can be used; gives 1 when one is refused, 2 where one is not there."""
    status, names = 0, dict[str, Path]()
    for path in _files(args.files):
        if not path.is_file() or path.name.endswith(CASES):
            print(f"{path}: {_no_policy(path)}", file=sys.stderr)
            status = 2
            continue
        try:
            policy = load(path)
            if policy.name in names:
                msg = f"{path}: name: a second policy named {policy.name!r}, after {names[policy.name]}; takes one of a name in a folder"
                raise PolicyError(msg)
            names[policy.name] = path
            print(f"{path}: ok: {policy.name}, lever {policy.lever}, version {policy.version}")
        except PolicyError as error:
            print(error, file=sys.stderr)
            status = max(status, 1)
    return status


def _files(named: list[Path]) -> Iterator[Path]:
    """The files that are named, and those of folders that a server would read."""
    for path in named:
        inside = sorted(file for file in path.iterdir() if is_policy(file.name)) if path.is_dir() else []
        yield from inside or [path]


def _no_policy(path: Path) -> str:
    if path.name.endswith(CASES) and path.is_file():
        return f"holds cases of {path.name.removesuffix(CASES)}.toml, which `leverwatch policy test` plays; takes a policy's TOML file"
    what = "is a folder without a policy" if path.is_dir() else "is not a file"
    return f"{what}; takes a policy's TOML file, or a folder of such files"
