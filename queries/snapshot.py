"""A store that is written meanwhile in, a copy of it from one moment out: a database file of its own, and its part files as links.

The copy is made by the process that owns the store, which attaches an empty store under `parts/`, the one place it may write to, and
fills it in the transaction that reads: one moment, a bounded memory, and no writer waits.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from queries.parts import SEALED
from queries.sealing import part_files
from queries.store import Store, Transaction

STAGING = "snapshots"
_COPY = "snapshot_copy"
_EMPTY_STORE_MEMORY = "256MB"


@dataclass(frozen=True, slots=True)
class Moment:
    """A store as it was at one moment, and the folder that takes its copy."""

    store: Store
    seen: Transaction
    staged: Path

    def copy(self) -> dict[str, int]:
        """Copies every table, links every part; gives the rows of each relation, the sealed ones included."""
        rows = {name: self._copy_table(name) for name in self._tables()}
        for relation in SEALED:
            rows[f"{relation}_hot"] += self._link_parts(relation)
        return {name.removesuffix("_hot"): rows[name] for name in sorted(rows)}

    def schema(self) -> int:
        """The number of the store's schema."""
        return int(self.seen.frame("select max(number) as number from schema_version").item())

    def _tables(self) -> list[str]:
        """The tables by name; the copy has its own `schema_version` from the start."""
        asked = "select table_name from duckdb_tables() where database_name = current_database() and not temporary and not internal"
        return [name for name in self.seen.frame(asked)["table_name"].to_list() if name != "schema_version"]

    def _copy_table(self, name: str) -> int:
        return self.seen.execute(f'insert into {_COPY}.main."{name}" by name select * from "{name}"')

    def _link_parts(self, relation: str) -> int:
        folder = self.staged / "parts" / relation
        folder.mkdir(exist_ok=True)
        for path in part_files(self.store, self.seen, relation):
            link(path, folder / path.name)
        counted = 'select coalesce(sum("rows"), 0)::bigint as n from parts where relation = $relation'
        return int(self.seen.frame(counted, {"relation": relation}).item())


@contextmanager
def moment(store: Store, name: str) -> Iterator[Moment]:
    """A moment of a store, to be copied into the folder `parts/snapshots/<name>`, which is a data folder when the block has ended.

    One at a time: the caller sees to it.
    """
    staged = store.parts / STAGING / name
    staged.mkdir(parents=True, mode=0o700)
    try:
        Store(staged, _EMPTY_STORE_MEMORY).close()
        with store.filling(staged / "live.duckdb", _COPY) as seen:
            yield Moment(store, seen, staged)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise


def clear(store: Store, before: datetime | None = None) -> None:
    """Deletes staged snapshots that nobody fetched: all of them at start, later those begun before a moment."""
    for folder in (store.parts / STAGING).glob("*"):
        if before is None or folder.stat().st_mtime < before.timestamp():
            shutil.rmtree(folder, ignore_errors=True)


def link(source: Path, target: Path) -> None:
    """Gives a file a second name, or where the file system cannot, copies it with its times."""
    with suppress(OSError):
        target.hardlink_to(source)
        return
    shutil.copy2(source, target)
