"""`leverwatch snapshot`: a consistent copy of a data folder, also while its server runs."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx
import msgspec

from leverwatch import unreachable
from leverwatch.cli import common
from leverwatch.connecting import connect
from leverwatch.connection import ConnectError
from leverwatch.remote import Remote
from leverwatch.snapshot_files import Manifest, SnapshotError, check, place, refuse_inside, refuse_taken


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    parser = subparsers.add_parser("snapshot", help="a copy of the data folder from one moment, also while its server runs")
    parser.add_argument("folder", metavar="DIR", help="where the copy goes: a folder that is not there yet")
    parser.add_argument("--data", metavar="DIR", help="the data folder (default: $LEVERWATCH_DATA, else ./leverwatch-data)")
    parser.add_argument("--check", action="store_true", help="compare the snapshot in DIR with its manifest; status 1 if it differs")
    told = "folder: a data folder, to serve from or to restore; parquet or duckdb: files that any tool opens"
    common.add_format(parser, "folder", "parquet", "duckdb", told=told)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Takes or checks a snapshot, and says what is in it."""
    target = Path(args.folder).absolute()
    if args.check:
        return _check(target)
    refuse_taken(target)
    refuse_inside(common.folder(args), target)
    print(f"leverwatch: copying {common.folder(args)}; its server goes on meanwhile", file=sys.stderr)
    if args.format != "folder":
        return _export(common.folder(args), args.format, target)
    manifest = _take(common.folder(args), target)
    print(f"{_told(manifest)} in {target}")
    return 0


def _export(folder: Path, kind: str, target: Path) -> int:
    """Takes a snapshot beside the target, writes its rows there, and lets it go."""
    from leverwatch import snapshot_export  # here, since a copy alone needs no store of its own

    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as beside:
        taken = Path(beside) / "snapshot"
        manifest = _take(folder, taken)
        print(f"leverwatch: writing {kind}", file=sys.stderr)
        rows = snapshot_export.export(taken, manifest, kind, target)
    told = ", ".join(f"{rows[name]:,} {name}" for name in ("spans", "requests") if name in rows)
    print(f"{manifest.taken_at:%Y-%m-%dT%H:%M:%SZ}, {told}, as {kind} in {target}; README.md there says what is in it")
    return 0


def _take(folder: Path, target: Path) -> Manifest:
    with connect(folder) as connection:
        if isinstance(connection, Remote):
            return _fetch(connection, target)
        from leverwatch.local import Local  # here, since it loads the decoder and the jobs: asking a server needs neither
        from leverwatch.snapshot import take

        if not isinstance(connection, Local):
            msg = f"{folder}: neither served nor to be opened here"
            raise ConnectError(msg)
        return take(connection.room, target)


def _fetch(remote: Remote, target: Path) -> Manifest:
    """Lets the server stage a copy in its own folder, the one place it writes to, and moves it from there."""
    try:
        response = remote.http.post("/api/snapshots", json={}, timeout=None)
    except httpx.HTTPError as error:
        raise ConnectError(unreachable.said(remote.url, error)) from error
    if not response.is_success:
        msg = f"{remote.url} answered {response.status_code}: {response.text[:500]}"
        raise SnapshotError(msg)
    answer = response.json()
    place(Path(answer["folder"]), target)
    return msgspec.convert(answer["manifest"], Manifest)


def _check(folder: Path) -> int:
    manifest, problems = check(folder)
    for problem in problems:
        print(problem)
    if problems:
        print(f"{len(problems)} files differ from the manifest; a folder that was opened or served has changed", file=sys.stderr)
        return 1
    print(f"as it was taken: {_told(manifest)}")
    return 0


def _told(manifest: Manifest) -> str:
    size_bytes = sum(file.bytes for file in manifest.files)
    told = ", ".join(f"{manifest.rows[name]:,} {name}" for name in ("spans", "requests") if name in manifest.rows)
    return f"{manifest.taken_at:%Y-%m-%dT%H:%M:%SZ}, {told}, {manifest.spool_bytes:,} spool bytes, {size_bytes:,} bytes in all"
