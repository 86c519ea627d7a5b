"""One task of `leverwatch work` in, what it did out: plain functions of plain values, which run here or on any machine that Ray has."""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pipeline import hour_job, hour_parts, hour_sorting, hours, lake_compare, measure, segments
from pipeline import metrics as metric_rows
from pipeline.arm_split import Holdout
from pipeline.hour_job import Told
from pipeline.hour_parts import Added, Made, Read, Shared
from pipeline.hour_sorting import Sorted, Whole
from pipeline.lake_compare import Asked, Compared
from pipeline.premise_evidence import Watched
from pipeline.schedule_rows import Period
from pipeline.uncontrolled_job import Configured
from queries.lake import Lake
from queries.lake_files import LakeFile
from queries.store import Store, StoreError


@dataclass(frozen=True, slots=True)
class Work:
    """What every task goes by: the lake, how requests are measured and compared, and the folder that a machine may keep things in."""

    uri: str
    options: tuple[tuple[str, str], ...]
    edges: segments.Edges
    slo: metric_rows.Slo
    by_tenant: bool = False
    schedule: tuple[Period, ...] = ()
    watched: tuple[Watched, ...] = ()
    holdouts: tuple[Holdout, ...] = ()
    kept: str = ""
    memory_limit: str = "2GB"
    part_spans: int = 300_000

    def lake(self) -> Lake:
        """The lake, opened once a process."""
        return _lake(self.uri, self.options)


def hour(work: Work, moment: datetime, cutoff: datetime) -> Told:
    """Makes an hour anew. Raises LakeError."""
    return hour_job.work(work.lake(), moment, _rules(work), cutoff)


def link(work: Work, moment: datetime, parts: int) -> Whole:
    """What has to be known of an hour before it is read in parts. Raises LakeError."""
    return hour_sorting.link(work.lake(), moment, parts)


def sort(work: Work, whole: Whole, table: str, files: Sequence[LakeFile]) -> Sorted:
    """Sorts rows of some files by the part that asks for them. Raises LakeError."""
    return hour_sorting.sort(work.lake(), whole, table, files)


def read(work: Work, whole: Whole, part: int, sources: Sequence[Sorted], cutoff: datetime) -> Read:
    """Makes requests of a part of an hour. Raises LakeError."""
    return hour_parts.read(work.lake(), whole, part, sources, _rules(work), cutoff)


def settle(work: Work, shared: Shared, number: int, cutoff: datetime) -> Made:
    """Settles a share of an hour. Raises LakeError."""
    return hour_parts.settle(work.lake(), shared, number, _rules(work), cutoff)


def lever(work: Work, name: str, mark: datetime) -> Compared:
    """Compares a lever's arms in the blocks that have closed by a watermark. Raises LakeError."""
    asked = Asked(work.edges, Configured(work.schedule, work.watched), work.holdouts)
    folder = Path(work.kept) / name if work.kept else None
    store = _kept(folder, work.memory_limit) if folder else None
    if store is not None:
        try:
            return lake_compare.work(store, work.lake(), name, mark, asked)
        finally:
            store.close()
    with tempfile.TemporaryDirectory(prefix="leverwatch-") as own:
        store = Store(Path(own), work.memory_limit)
        try:
            return lake_compare.work(store, work.lake(), name, mark, asked)
        finally:
            store.close()


def levers_of(lake: Lake, moments: Sequence[datetime]) -> set[str]:
    """The levers that have cells in these hours, and those that were compared before."""
    files = [file for moment in moments for file in lake.files("cells", moment, moment + hours.HOUR)]
    found = set(lake.read("cells", ["lever"], files=files)["lever"].unique().to_pylist()) if files else set()
    return (found | lake_compare.levers(lake)) - {measure.ALL_REQUESTS}


def add(work: Work, moment: datetime, done: Sequence[Made]) -> Added:
    """Adds up the cells that shares of an hour have in common. Raises LakeError."""
    return hour_parts.add(work.lake(), moment, done)


def _rules(work: Work) -> hours.Rules:
    return hours.Rules(work.edges, functools.partial(measure.cells, by_tenant=work.by_tenant, metrics=metric_rows.with_slo(work.slo)))


def _kept(folder: Path, memory_limit: str) -> Store | None:
    """The store that this machine kept of a lever; None where another task is at it. One that cannot be opened is begun anew."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        return Store(folder, memory_limit)
    except StoreError as error:
        if "another process holds it" in str(error):
            return None
    shutil.rmtree(folder, ignore_errors=True)
    return Store(folder, memory_limit)


@functools.lru_cache(maxsize=2)
def _lake(uri: str, options: tuple[tuple[str, str], ...]) -> Lake:
    return Lake.open(uri, dict(options))


def options_of(options: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Options as a value that stands for them."""
    return tuple(sorted(options.items()))
