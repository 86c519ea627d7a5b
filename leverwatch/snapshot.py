"""An engine room that goes on working in, a data folder of its own from one moment out, with a manifest that says what it holds."""

from __future__ import annotations

import secrets
import shutil
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

from collectors.spool_copy import HeldSegments
from collectors.spool_records import Position
from leverwatch.engine_room import EngineRoom
from leverwatch.snapshot_files import MANIFEST, Manifest, SnapshotError, place, refuse_inside, refuse_taken, sums, sync_tree, written
from leverwatch.version import __version__
from queries import snapshot
from queries.snapshot import Moment

TRIES = 5
STAGED_FOR = timedelta(hours=1)
_CONFIGURATION = "leverwatch.toml"


class _Copied(NamedTuple):
    """A staged copy, whole but for its manifest."""

    folder: Path
    schema: int
    rows: dict[str, int]
    spool_bytes: int


def take(room: EngineRoom, target: Path) -> Manifest:
    """Takes a snapshot into a new folder, while the room goes on. The folder is there whole, or not at all.

    Raises:
        SnapshotError: the folder is there already or in the data folder, or another snapshot is being taken.
    """
    refuse_inside(room.folder, target)
    refuse_taken(target)
    staged, manifest = stage(room)
    place(staged, target)
    return manifest


def stage(room: EngineRoom) -> tuple[Path, Manifest]:
    """Takes a snapshot inside the data folder, to be placed elsewhere.

    Raises:
        SnapshotError: another is being taken.
        UnwrittenError: none can be written.
    """
    if not room.taking_snapshot.acquire(blocking=False):
        msg = f"{room.folder}: another snapshot is being taken; one at a time"
        raise SnapshotError(msg)
    try:
        snapshot.clear(room.store, room.clock() - STAGED_FOR)
        with written(room.folder / "parts" / snapshot.STAGING):
            return _stage(room)
    finally:
        room.taking_snapshot.release()


def _stage(room: EngineRoom) -> tuple[Path, Manifest]:
    taken_at = room.clock()
    began = f"{taken_at:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"  # another of this second may wait to be fetched
    staged = (_copy(room, f"{began}-{attempt}") for attempt in range(TRIES))
    copied = next((copy for copy in staged if copy), None)
    if copied is None:
        msg = f"{room.folder}: the spool moves on faster than it can be held; try again"
        raise SnapshotError(msg)
    if (room.folder / _CONFIGURATION).is_file():
        shutil.copy2(room.folder / _CONFIGURATION, copied.folder)
    manifest = Manifest(__version__, copied.schema, taken_at, copied.rows, copied.spool_bytes, sums(copied.folder))
    (copied.folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
    sync_tree(copied.folder)
    return copied.folder, manifest


def _copy(room: EngineRoom, name: str) -> _Copied | None:
    """Copies tables, parts and spool of one moment; None where a part of the spool came and went before it could be held."""
    with HeldSegments(room.folder / "spool") as held, snapshot.moment(room.store, name) as moment:
        start = _position(moment)
        end = room.spool.end  # all that was acknowledged before the moment lies before it
        if not held.hold_until(end):
            return None
        schema, rows = moment.schema(), moment.copy()
        return _Copied(moment.staged, schema, rows, held.copy(start, end, moment.staged / "spool"))


def _position(moment: Moment) -> Position:
    rows = moment.seen.frame("select segment, byte_offset from spool_position").rows()
    return Position(*rows[0]) if rows else Position(0, 0)
