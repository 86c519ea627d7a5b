"""A folder with a snapshot in, whether it is as its manifest says out; and its way from where it was taken to where it is wanted."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import msgspec

from queries.data_errors import STORE_ERRORS

MANIFEST = "snapshot.json"


class SnapshotError(RuntimeError):
    """No snapshot can be taken, placed or checked; says what is in the way."""


class UnwrittenError(OSError):
    """A copy cannot be written, say because the disk is full; nothing of it is left."""


@contextmanager
def written(target: Path) -> Iterator[None]:
    """Says in a sentence what keeps a copy from being written. Raises UnwrittenError."""
    try:
        yield
    except (OSError, *STORE_ERRORS) as error:
        first = error.args[0] if isinstance(error, shutil.Error) else ()
        said = str(first[0][2] if first else error).strip().splitlines()[0]
        msg = f"{target} cannot be written: {said}; nothing of it is left"
        raise UnwrittenError(msg) from error


class FileSum(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of a snapshot, by its path below the folder."""

    path: str
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a snapshot holds: rows of each relation, bytes of the spool that are not among them yet, and every file."""

    version: str
    schema: int
    taken_at: datetime
    rows: dict[str, int]
    spool_bytes: int
    files: tuple[FileSum, ...]


def place(staged: Path, target: Path) -> None:
    """Moves a staged snapshot to where it is wanted: by rename, or over file systems by a copy that is renamed when it is whole.

    Raises:
        SnapshotError: something is there already.
        UnwrittenError: it cannot be written.
    """
    try:
        refuse_taken(target)
        with written(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            _move(staged, target)
            _sync(target.parent)
    finally:
        shutil.rmtree(staged, ignore_errors=True)  # where it could not be placed, nobody else will fetch it


def _move(staged: Path, target: Path) -> None:
    with suppress(OSError):
        staged.rename(target)
        return
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        shutil.copytree(staged, partial)
        sync_tree(partial)
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def refuse_taken(target: Path) -> None:
    """Raises SnapshotError where something has that name already."""
    if os.path.lexists(target):
        msg = f"{target} is there already; a snapshot goes to a folder that is not there yet"
        raise SnapshotError(msg)


def refuse_inside(folder: Path, target: Path) -> None:
    """Raises SnapshotError where a snapshot would go into the very data folder that it is of."""
    if target.resolve().is_relative_to(folder.resolve()):
        msg = f"{target} lies in the data folder {folder}; a snapshot goes to a folder outside it"
        raise SnapshotError(msg)


def check(folder: Path) -> tuple[Manifest, list[str]]:
    """The manifest of a snapshot, and what is not as it says: files missing, changed or added.

    Raises:
        SnapshotError: there is no manifest, or none that can be read.
    """
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError) as error:
        msg = f"{folder / MANIFEST}: no manifest of a snapshot: {error}"
        raise SnapshotError(msg) from error
    problems = [problem for listed in manifest.files if (problem := _problem(folder, listed))]
    known = {listed.path for listed in manifest.files} | {MANIFEST}
    added = sorted(set(_paths(folder)) - known)
    return manifest, problems + [f"{path}: is not in the manifest" for path in added]


def sums(folder: Path) -> tuple[FileSum, ...]:
    """Size and digest of every file below a folder."""
    return tuple(FileSum(path, (folder / path).stat().st_size, _digest(folder / path)) for path in _paths(folder))


def sync_tree(folder: Path) -> None:
    """Makes everything below a folder durable."""
    for path in (*folder.rglob("*"), folder):
        _sync(path)


def _paths(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _problem(folder: Path, listed: FileSum) -> str | None:
    path = folder / listed.path
    if not path.is_file():
        return f"{listed.path}: is missing"
    if path.stat().st_size != listed.bytes:
        return f"{listed.path}: has {path.stat().st_size} bytes, the manifest says {listed.bytes}"
    return None if _digest(path) == listed.sha256 else f"{listed.path}: has other content than the manifest says"


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
