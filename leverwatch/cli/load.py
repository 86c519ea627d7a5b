"""`leverwatch load`: recorded telemetry into the store, through its server where one runs."""

from __future__ import annotations

import argparse
import re
import sys
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from collectors.recorded_kinds import KINDS
from demo.traffic import traces
from leverwatch.cli import common
from leverwatch.loading import Here, Rows, There, Way, put_files
from leverwatch.local import Local
from leverwatch.remote import Remote
from leverwatch.simulating import Simulator
from queries import report
from queries.printable import printable

ENDINGS = (".pb", ".json", ".jsonl", ".gz", ".parquet", ".csv")
ITEMS = {"traces": "spans", "metrics": "samples", "logs": "log records", "evaluations": "evaluations", "requests": "requests"}
LIMIT_SHOWN = 20


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    kinds = [*(kind.name for kind in KINDS), *traces.KINDS]
    told = "load recorded telemetry: OTLP traces, metrics and logs (protobuf, JSON, a Collector's JSON lines), or one of: " + ", ".join(
        kinds[3:]
    )
    parser = subparsers.add_parser("load", help=told)
    common.add_data(parser)
    parser.add_argument("files", nargs="+", metavar="FILE", help=f"files, or folders whose {', '.join(ENDINGS)} files are taken in order")
    parser.add_argument("--kind", choices=kinds, default="", help="what the files are, where their content does not tell")
    parser.add_argument(
        "--began", metavar="T", help="public traces: when their first request came (ISO 8601 from 1971 to 2199, or an age such as 90m)"
    )
    parser.add_argument(
        "--speed",
        type=float,
        default=1.0,
        metavar="X",
        help="public traces: how much faster than life they are played, 0.001 to 10000 (default: 1)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Loads and says how many items went in, how many did not, and why. Status 2 when something was unreadable."""
    sender = f"load:{uuid.uuid4().hex[:12]}"
    files = list(_files(args.files))
    now = datetime.now(UTC)
    began = report.moment(args.began, now) if args.began is not None else None
    simulator = Simulator(now=now, began=began, speed=args.speed, told=print, progress=lambda sentence: common.say([sentence]))
    with common.connection(args, create=True) as connection:
        way: Way = Here(connection, sender) if isinstance(connection, Local) else There(cast(Remote, connection), sender)
        problems = list(put_files(way, files, args.kind, simulator.bodies))
        rows = way.ledger()
    print(f"{_said(rows)}, from {_counted(len(files), 'files')}")
    for row in rows:
        for told in row["reasons"]:
            print(printable(f"{row['signal']}: {told['items']} times: {told['reason']}"), file=sys.stderr)
    for line in shown([str(problem) for problem in problems]):
        print(printable(f"not loaded: {line}"), file=sys.stderr)
    return 2 if problems else 0


def shown(problems: Iterable[str]) -> Iterator[str]:
    """The first problem of each kind, with how many more are like it: the same text but for its numbers. At most 20 kinds."""
    kinds: dict[str, list[str]] = {}
    for problem in problems:
        kinds.setdefault(re.sub(r"\d+", "0", problem), []).append(problem)
    for alike in [*kinds.values()][:LIMIT_SHOWN]:
        yield alike[0] + (f" (and {len(alike) - 1:,} more like it)" if len(alike) > 1 else "")
    rest = sum(len(alike) for alike in [*kinds.values()][LIMIT_SHOWN:])
    if rest:
        yield f"{rest:,} more"


def _said(rows: Rows) -> str:
    """One clause a signal."""
    if not rows:
        return "nothing stored"
    return "; ".join(
        f"{_counted(row['stored'], ITEMS[row['signal']])} stored, {row['duplicate']} already there, {row['rejected']} rejected"
        + (f", {row['dropped']} dropped" if row["dropped"] else "")
        for row in sorted(rows, key=lambda row: list(ITEMS).index(row["signal"]))
    )


def _counted(count: int, items: str) -> str:
    return f"{count} {items.removesuffix('s') if count == 1 else items}"


def _files(named: list[str]) -> Iterator[Path]:
    """The files in order; of a folder those below it that may hold telemetry.

    Raises:
        OSError: nothing is there under a name, or nothing in its folder that may hold telemetry.
    """
    for name in named:
        path = Path(name)
        if path.is_dir():
            below = sorted(found for found in path.rglob("*") if found.suffix in ENDINGS and found.name != "meta.json")
            if not below:
                msg = f"{name}: no file below it ends in {', '.join(ENDINGS)}"
                raise FileNotFoundError(msg)
            yield from below
        elif path.is_file():
            yield path
        else:
            msg = f"{name}: no such file or folder"
            raise FileNotFoundError(msg)
