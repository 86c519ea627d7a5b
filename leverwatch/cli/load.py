"""`leverwatch load`: recorded exports into the store, through its server where one runs."""

from __future__ import annotations

import argparse
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from collectors.decode import check
from collectors.recorded import NotLoadedError, bodies
from leverwatch.cli import common
from leverwatch.connection import ConnectError
from leverwatch.local import Local
from leverwatch.remote import Remote

WAIT_S = 120.0
PAUSE_S = 0.2


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    parser = subparsers.add_parser("load", help="recorded OTLP traces: protobuf exports, OTLP/JSON, a Collector's JSON lines")
    common.add_data(parser)
    parser.add_argument("files", nargs="+", metavar="FILE", help="files, or folders whose .pb, .json and .jsonl files are taken in order")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Loads and says how many spans went in, how many did not, and why. Status 2 when something was unreadable."""
    sender = f"load:{uuid.uuid4().hex[:12]}"
    problems: list[NotLoadedError] = []
    files = list(_files(args.files))
    with common.connection(args, create=True) as connection:
        if isinstance(connection, Local):
            tally = _load_here(connection, files, sender, problems)
        else:
            tally = _load_there(_remote(connection), files, sender, problems)
    print(f"{tally['stored']} spans stored, {tally['duplicate']} already there, {tally['rejected']} rejected, from {len(files)} files")
    for problem in problems[:20]:
        print(f"not loaded: {problem}", file=sys.stderr)
    if len(problems) > 20:
        print(f"not loaded: {len(problems) - 20} more", file=sys.stderr)
    return 2 if any(not problem.is_known for problem in problems) else 0


def _load_here(connection: Local, files: list[Path], sender: str, problems: list[NotLoadedError]) -> Counter[str]:
    room = connection.room

    def put(body: bytes, where: Path) -> None:
        if not check(body).sound:
            problems.append(NotLoadedError(f"{where}: not a sound trace export"))
            return
        room.spool.append("traces", sender, time.time_ns(), body).result()
        if room.spool.backlog_bytes > room.config.store.limit_backlog_bytes // 2:
            room.drain()

    _each_body(files, problems, put)
    room.drain()
    return _tally(room.store.rows("select stored, duplicate, rejected from ingest_ledger where sender = $sender", {"sender": sender}))


def _load_there(remote: Remote, files: list[Path], sender: str, problems: list[NotLoadedError]) -> Counter[str]:
    headers = {"content-type": "application/x-protobuf", "x-leverwatch-sender": sender}
    sent = Counter({"spans": 0})

    def put(body: bytes, where: Path) -> None:
        for _ in range(int(WAIT_S / PAUSE_S)):
            response = remote.http.post(f"{remote.otlp_http}/v1/traces", content=body, headers=headers, timeout=WAIT_S)
            if response.status_code not in (429, 503):
                break
            time.sleep(float(response.headers.get("retry-after", PAUSE_S)))
        if response.is_success:
            sent["spans"] += check(body).spans
        else:
            problems.append(NotLoadedError(f"{where}: the server answered {response.status_code}"))

    _each_body(files, problems, put)
    deadline = time.monotonic() + WAIT_S
    while True:
        tally = _tally(remote.http.get("/api/ledger", params={"sender": sender}).json())
        if sum(tally.values()) >= sent["spans"] or time.monotonic() > deadline:
            return tally
        time.sleep(PAUSE_S)


def _each_body(files: list[Path], problems: list[NotLoadedError], put: Callable[[bytes, Path], None]) -> None:
    for path in files:
        for item in bodies(path):
            if isinstance(item, NotLoadedError):
                problems.append(item)
            else:
                put(item, path)


def _tally(rows: list[dict[str, Any]]) -> Counter[str]:
    tally = Counter({"stored": 0, "duplicate": 0, "rejected": 0})
    for row in rows:
        tally.update({name: row[name] for name in ("stored", "duplicate", "rejected")})
    return tally


def _files(named: list[str]) -> Iterator[Path]:
    """The files in order; of a folder those below it that may hold exports.

    Raises:
        OSError: nothing is there under a name.
    """
    for name in named:
        path = Path(name)
        if path.is_dir():
            yield from sorted(
                found for found in path.rglob("*") if found.suffix in (".pb", ".json", ".jsonl") and found.name != "meta.json"
            )
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
