"""The parts that are listed and the files beside them in; what is lost of them told, given up, or brought back, and strangers set aside.

Nothing goes without a word: a file that no row lists, and that no commit replaced, moves to `set_aside/parts/<relation>/` and comes back by
itself once it is listed and missing, say because the right database is in its place again. A listed part that is missing or damaged stops
the start, until it is back or the operator gives it up.
"""

from __future__ import annotations

import itertools
import logging
import os
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from queries.parts import SEALED
from queries.store import Store, StoreError, Transaction

SET_ASIDE = "set_aside/parts"
GIVE_UP = "give_up_lost"  # an empty file of this name below `parts/` says: go on without what is lost now
MARK, MARKS_BYTES = b"PAR1", 12  # both ends of a Parquet file bear it
TOLD = 3
UNFINISHED = re.compile(r"\d{8}(T\d\d)?-\d+")  # the name while a file is written: its layout is added when it is whole
LISTED = 'select relation, "file", since, until, "rows", bytes from parts order by relation, since, "file"'

log = logging.getLogger("leverwatch")


class PartsError(StoreError):
    """Listed parts are missing or damaged; names the file and what to do."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A listed part whose rows cannot be read, and why."""

    relation: str
    path: Path
    rows: int
    problem: str

    def told(self) -> str:
        """The file, why, and what is lost with it."""
        return f"{self.path} {self.problem} (it is listed with {self.rows:,} {self.relation})"


def lost(store: Store, listed: pl.DataFrame) -> list[Lost]:
    """The parts that are missing, have another size than listed, or no ends of a Parquet file; `listed` are rows of `LISTED`."""
    rows = ((row, store.parts / row["relation"] / row["file"]) for row in listed.to_dicts())
    return [Lost(row["relation"], path, row["rows"], problem) for row, path in rows if (problem := _problem(path, row["bytes"]))]


def lost_now(store: Store) -> list[Lost]:
    """The parts of a running store that cannot be read. One that a commit took off the list meanwhile is none."""
    with store.reading():
        return lost(store, store.frame(LISTED))


def told(found: list[Lost]) -> str:
    """The first of the lost, and how many more there are; empty where none is."""
    more = f", and {len(found) - TOLD} more" if len(found) > TOLD else ""
    return "; ".join(part.told() for part in found[:TOLD]) + more


def check(store: Store, transaction: Transaction, now: datetime) -> None:
    """Brings back what was set aside and is missed; gives up what is lost where the operator asks for it.

    Raises:
        PartsError: a listed part is missing or damaged, and is not to be given up.
    """
    listed = transaction.frame(LISTED)
    for part in lost(store, listed):
        _bring_back(store, part)
    found, asked = lost(store, listed), store.parts / GIVE_UP
    if found and not asked.exists():
        remedy = f"put back what a snapshot has, or, to go on without these rows for good, create the file {asked} and start again"
        msg = f"{told(found)}; {remedy}"
        raise PartsError(msg)
    for part in found:
        log.warning("%s; its rows are given up, as %s asks", part.told(), asked)
        _give_up(transaction, part, now)


def set_aside(store: Store, transaction: Transaction) -> None:
    """Moves part files that are not listed out of the way, and deletes those that were replaced or that a crash left half written."""
    replaced = {store.parts / row["relation"] / row["file"] for row in transaction.frame("select * from replaced_parts").to_dicts()}
    transaction.execute("delete from replaced_parts")
    listed = {store.parts / row["relation"] / row["file"] for row in transaction.frame(LISTED).to_dicts()}
    for relation in SEALED:
        strange = {path for path in (store.parts / relation).glob("*.parquet") if path.is_file()} - listed
        for path in [path for path in strange if path in replaced or (UNFINISHED.fullmatch(path.stem) and _end_problem(path))]:
            path.unlink()
            strange.remove(path)
        to = store.folder / SET_ASIDE / relation
        for path in strange:
            to.parent.parent.mkdir(mode=0o700, exist_ok=True)  # bodies lie there too
            to.mkdir(parents=True, exist_ok=True)
            target = _free_name(to / path.name)
            path.rename(target)
            os.utime(target)  # how long it is kept counts from now
        if strange:
            said = "%d files of %s that nothing lists were moved to %s; after a crash they hold what is stored already or loaded again"
            log.warning(said, len(strange), relation, to)


def forget_asked(store: Store) -> None:
    """Takes the operator's word away: it held for one start."""
    (store.parts / GIVE_UP).unlink(missing_ok=True)


def drop_set_aside(store: Store, before: datetime) -> int:
    """Deletes the files that were set aside before a moment; gives how many."""
    old = [path for path in (store.folder / SET_ASIDE).glob("*/*.parquet") if path.stat().st_mtime < before.timestamp()]
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


def _free_name(target: Path) -> Path:
    names = (target.with_stem(f"{target.stem}+{number}") for number in itertools.count(1))
    return next(name for name in itertools.chain([target], names) if not name.exists())


def _bring_back(store: Store, part: Lost) -> None:
    kept = store.folder / SET_ASIDE / part.relation / part.path.name
    if kept.is_file() and not part.path.exists():
        kept.rename(part.path)
        log.warning("%s was set aside and is listed: it is back", part.path)


def _give_up(transaction: Transaction, part: Lost, now: datetime) -> None:
    named = {"relation": part.relation, "file": part.path.name}
    transaction.execute(
        'insert into retention_log (relation, since, until, "rows", bytes, reason, dropped_at) select relation, since, until, "rows", '
        "bytes, 'lost', $now from parts where relation = $relation and \"file\" = $file",
        {**named, "now": now},
    )
    transaction.execute('delete from parts where relation = $relation and "file" = $file', named)
    if part.relation == "spans":
        transaction.execute('delete from dirty_parts where "file" = $file', {"file": part.path.name})


def _problem(path: Path, listed_bytes: int) -> str:
    try:
        held = path.stat().st_size
    except OSError as error:
        return "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
    return _end_problem(path) if held == listed_bytes else f"has {held:,} bytes where {listed_bytes:,} are listed"


def _end_problem(path: Path) -> str:
    """What keeps a file from being Parquet, as far as its ends tell; empty where nothing does."""
    try:
        with path.open("rb") as file:
            first = file.read(len(MARK))
            if file.seek(0, os.SEEK_END) < MARKS_BYTES:
                return "is too short for a part"
            file.seek(-len(MARK), os.SEEK_END)
            return "" if first == file.read() == MARK else "is damaged: it is no whole Parquet file"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
