"""The files of a lake's table in, parts of a store out: linked where both lie on one disk, else copied; the newest, as many as have room.

Files of a lake never change, and neither do parts. So whatever reads parts reads a lake, and nobody who asks reaches the lake itself.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq

from queries import sealing
from queries.lake import Lake
from queries.lake_errors import told_of_file
from queries.lake_files import LakeFile, table_place
from queries.lake_tables import hour_begin
from queries.store import Store, Transaction

LEVEL = 3  # of a part: merged by whoever keeps the lake
REASON = "mirror"
COPIED_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Covered:
    """Since when a store's parts hold all of what a lake's table has; None: since ever. How many files came and went."""

    since: datetime | None
    came: int
    went: int


def take(store: Store, lake: Lake, table: str, limit_bytes: int, now: datetime, since: datetime | None = None) -> Covered:
    """Makes the parts of `spans` or `requests` the newest files of the lake, of hours from `since` on. All of it is seen at once.

    Raises:
        LakeError: the lake cannot be read.
    """
    files = lake.files(table)
    wanted = {_name(file): file for file in _newest(files, limit_bytes, since)}
    listed = set(store.frame('select "file" from parts where relation = $relation', {"relation": table})["file"].to_list())
    held = {_own(name): name for name in listed}
    new = [file for name, file in wanted.items() if name not in held]
    gone = [name for own, name in held.items() if own not in wanted]
    covered = Covered(_since(files, list(wanted.values())), len(new), len(gone))
    if not new and not gone:
        return covered
    paths = [(file, _brought(store, lake, table, file)) for file in new]
    with store.write() as transaction:
        for file, path in paths:
            hour = hour_begin(file.hour)
            sealing.list_part(transaction, table, path, hour, file.rows, level=LEVEL, until=hour + timedelta(hours=1))
        sealing.unlist(store, transaction, table, gone)
        _note(transaction, table, files, covered, now)
    return covered


def _newest(files: Sequence[LakeFile], limit_bytes: int, since: datetime | None) -> Iterable[LakeFile]:
    """Whole hours from the newest back, as many as there is room for; one at least. 0 is no bound."""
    hours: dict[str, list[LakeFile]] = {}
    for file in files:
        if since is None or hour_begin(file.hour) + timedelta(hours=1) > since:
            hours.setdefault(file.hour, []).append(file)
    taken = 0
    for place, hour in enumerate(sorted(hours, reverse=True)):
        taken += sum(file.bytes for file in hours[hour])
        if place and limit_bytes and taken > limit_bytes:
            return
        yield from hours[hour]


def _since(files: Sequence[LakeFile], wanted: Sequence[LakeFile]) -> datetime | None:
    """Where what is wanted begins, if there is more before it."""
    if len(files) == len(wanted):
        return None
    oldest = min((file.hour for file in wanted), default=None)
    return hour_begin(oldest) if oldest is not None else hour_begin(max(file.hour for file in files)) + timedelta(hours=1)


def _brought(store: Store, lake: Lake, table: str, file: LakeFile) -> Path:
    """A lake's file as a file of the store's, under a name that says its columns."""
    folder = store.parts / table
    folder.mkdir(exist_ok=True)
    path = folder / f"{_name(file)}.parquet.coming"
    path.unlink(missing_ok=True)
    place = table_place(lake.uri, lake.options, table)
    with told_of_file(file.uri):
        if place.folder is None:
            with place.filesystem().open_input_file(file.path) as source, path.open("wb") as target:
                shutil.copyfileobj(source, target, COPIED_BYTES)
        else:
            try:
                os.link(place.folder / file.path, path)
            except OSError:  # another disk, or one that has no links
                shutil.copyfile(place.folder / file.path, path)
    hour, own = _name(file).split("-")
    with told_of_file(file.uri):
        layout = _layout(path)
    done = path.rename(folder / f"{hour}-{layout}-{own}.parquet")
    sealing.sync(done)
    return done


def _layout(path: Path) -> str:
    said = "\n".join(f"{field.name} {field.type}" for field in pq.read_schema(path))
    return hashlib.blake2b(said.encode(), digest_size=4).hexdigest()


def _name(file: LakeFile) -> str:
    """What a part is called after a lake's file, but for its columns: the hour, and what the file has of its own."""
    return f"{hour_begin(file.hour):{sealing.HOUR}}-{Path(file.path).name.partition('.')[0].replace('-', '_')}"


def _own(name: str) -> str:
    hour, *_, own = Path(name).stem.split("-")
    return f"{hour}-{own}"


def _note(transaction: Transaction, table: str, files: Sequence[LakeFile], covered: Covered, now: datetime) -> None:
    """Says in `retention_log` what the lake has and the store's parts have not: whoever asks of that time is told."""
    transaction.execute("delete from retention_log where relation = $relation and reason = $reason", {"relation": table, "reason": REASON})
    if covered.since is None:
        return
    left = [file for file in files if hour_begin(file.hour) < covered.since]
    row = {
        "relation": table, "since": hour_begin(min(file.hour for file in left)), "until": covered.since,
        "rows": sum(file.rows for file in left), "bytes": sum(file.bytes for file in left), "reason": REASON, "now": now,
    }  # fmt: skip
    transaction.execute("insert into retention_log values ($relation, $since, $until, $rows, $bytes, $reason, $now)", row)
