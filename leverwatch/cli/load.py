"""`leverwatch load`: recorded telemetry into the store, through its server where one runs."""

from __future__ import annotations

import argparse
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from collectors.recorded_kinds import KINDS, named
from leverwatch.cli import common
from leverwatch.connection import ConnectError
from leverwatch.loading import Here, Rows, There, Way, put_files
from leverwatch.local import Local
from leverwatch.remote import Remote

ENDINGS = (".pb", ".json", ".jsonl", ".gz", ".parquet", ".csv")
ITEMS = {"traces": "spans", "metrics": "samples", "logs": "log records", "evaluations": "evaluations", "requests": "requests"}
LIMIT_SHOWN = 20


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    kinds = [kind.name for kind in KINDS]
    told = "recorded telemetry: OTLP traces, metrics and logs (protobuf, JSON, a Collector's JSON lines), or one of: " + ", ".join(
        kinds[3:]
    )
    parser = subparsers.add_parser("load", help=told)
    common.add_data(parser)
    parser.add_argument("files", nargs="+", metavar="FILE", help=f"files, or folders whose {', '.join(ENDINGS)} files are taken in order")
    parser.add_argument("--kind", choices=kinds, default="", help="what the files are, where their content does not tell")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Loads and says how many items went in, how many did not, and why. Status 2 when something was unreadable."""
    sender = f"load:{uuid.uuid4().hex[:12]}"
    files = list(_files(args.files))
    if args.kind:
        named(args.kind)
    with common.connection(args, create=True) as connection:
        way: Way = Here(connection, sender) if isinstance(connection, Local) else There(_remote(connection), sender)
        problems = list(put_files(way, files, args.kind))
        rows = way.ledger()
    print(f"{_said(rows)}, from {len(files)} files")
    for row in rows:
        for told in row["reasons"]:
            print(f"{row['signal']}: {told['items']} times: {told['reason']}", file=sys.stderr)
    for problem in problems[:LIMIT_SHOWN]:
        print(f"not loaded: {problem}", file=sys.stderr)
    if len(problems) > LIMIT_SHOWN:
        print(f"not loaded: {len(problems) - LIMIT_SHOWN} more", file=sys.stderr)
    return 2 if problems else 0


def _said(rows: Rows) -> str:
    """One clause a signal, spans always."""
    shown = rows if any(row["signal"] == "traces" for row in rows) or rows else [{"signal": "traces", **dict.fromkeys(COUNTS, 0)}]
    return "; ".join(
        f"{row['stored']} {ITEMS[row['signal']]} stored, {row['duplicate']} already there, {row['rejected']} rejected"
        + (f", {row['dropped']} dropped" if row["dropped"] else "")
        for row in sorted(shown, key=lambda row: list(ITEMS).index(row["signal"]))
    )


COUNTS = ("stored", "duplicate", "rejected", "dropped")


def _files(named: list[str]) -> Iterator[Path]:
    """The files in order; of a folder those below it that may hold telemetry.

    Raises:
        OSError: nothing is there under a name.
    """
    for name in named:
        path = Path(name)
        if path.is_dir():
            yield from sorted(found for found in path.rglob("*") if found.suffix in ENDINGS and found.name != "meta.json")
        elif path.is_file():
            yield path
        else:
            msg = f"{name}: no such file or folder"
            raise FileNotFoundError(msg)


def _remote(connection: object) -> Remote:
    if isinstance(connection, Remote) and connection.otlp_http:
        return connection
    msg = "loading through --url is not possible: the OTLP address is only known from the data folder; use --data"
    raise ConnectError(msg)
