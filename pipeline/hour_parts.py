"""A lake and an hour that is too large for one worker in; what `hour_job.work` leaves, made in parts that run beside each other, out.

The hour is read by parts of its traces, settled by shares of its replicas, and put in its place in one commit a table. Nothing is in the
lake's tables before that, so whatever of it fails, or is done twice, changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from pipeline import hour_job, hour_packing, hour_spans, hours, lake_cells
from pipeline.hour_job import MADE, Told
from pipeline.hour_sorting import BUCKETS, Sorted, Whole, apart, buckets, columns_of
from pipeline.hours import HOUR, Raw, Rules, Spans
from queries import lake_staging, lake_taking
from queries.lake import Lake
from queries.lake_commits import AddedFile
from queries.lake_staging import Staged
from queries.lake_tables import columns

Files = Mapping[str, Sequence[AddedFile]]
FIRST_SHARE = 0  # of replicas that no request names, and of what was set aside as it was read


@dataclass(frozen=True, slots=True)
class Read:
    """What one part of an hour holds: requests, engines' spans and what was set aside; who served how many; and how long blocks lasted."""

    requests: Staged
    spoken: Staged
    quarantine: Staged
    counts: pa.Table
    lasted: Spans
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Shared:
    """How an hour is settled: the share of each home and replica, how many shares there are, and how long its blocks lasted."""

    hour: datetime
    shares: Mapping[str, int]
    count: int
    lasted: Spans
    reads: tuple[Read, ...]
    sources: tuple[Sorted, ...]


@dataclass(frozen=True, slots=True)
class Made:
    """What a share left: files of each table that no commit names yet, cells that other shares may have too, its requests, and how many
    of them are settled."""

    files: Files
    common: Mapping[str, Staged]
    requests: int
    settled: int
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Added:
    """Files of the cells that shares have in common."""

    files: Files
    cpu_s: float


def read(lake: Lake, whole: Whole, part: int, sources: Sequence[Sorted], rules: Rules, cutoff: datetime) -> Read:
    """Makes requests of one part of an hour's traces and of its imported requests, as they were sorted. Raises LakeError."""
    began_s, hour, oldest = time.process_time(), whole.hour, pl.CompatLevel.oldest()
    spans = hour_spans.of_rows(_gathered(lake, sources, "spans", [part]), hour, whole.until)
    spoken = spans.select(hours.SPOKEN).filter(pl.col("role") == "engine")
    loaded = hour_spans.loaded(_gathered(lake, sources, "imported_requests", [part]))
    requests, quarantine = hours.assembled(spans, loaded, rules.edges)
    del spans
    counts = hour_packing.counted(requests).to_arrow(compat_level=oldest)
    lasted = hours.block_spans(requests, hour, hours.settled_until(hour, cutoff))
    homes, rows = buckets(requests.select(hour_packing.home()).to_series()), hours.as_rows(requests)
    del requests  # its rows are there once, then once more by bucket
    return Read(
        lake_staging.put(lake, hour, apart(rows, homes, BUCKETS)),
        lake_staging.put(lake, hour, apart(spoken.to_arrow(compat_level=oldest), buckets(spoken["replica"]), BUCKETS)),
        lake_staging.put(lake, hour, [hour_job.as_rows("quarantine", quarantine)]),
        counts,
        lasted,
        time.process_time() - began_s,
    )


def share(whole: Whole, sources: Sequence[Sorted], reads: Sequence[Read], most: int) -> Shared:
    """Who is settled together, `most` requests a share, of all parts of an hour."""
    counts = pl.concat([pl.DataFrame(one.counts) for one in reads])
    shares = hour_packing.packed(counts, most)
    lasted: dict[datetime, tuple[datetime, datetime]] = {}
    for one in reads:
        for block, (since, until) in one.lasted.items():
            first, last = lasted.get(block, (since, until))
            lasted[block] = min(since, first), max(until, last)
    return Shared(whole.hour, shares, max(shares.values(), default=FIRST_SHARE) + 1, lasted, tuple(reads), tuple(sources))


def settle(lake: Lake, shared: Shared, number: int, rules: Rules, cutoff: datetime) -> Made:
    """Settles one share of an hour's requests and measures them. Raises LakeError."""
    began_s, hour = time.process_time(), shared.hour
    made = hours.made(hour, _raw(lake, shared, number), rules, cutoff, shared.lasted)
    rows = hour_job.tables(made)
    common = {kind: rows[kind].filter(pc.is_null(rows[kind]["replica"])) for kind in lake_cells.KINDS}
    own = rows | {kind: rows[kind].filter(pc.is_valid(rows[kind]["replica"])) for kind in lake_cells.KINDS}
    return Made(
        _files(lake, hour, own),
        {kind: lake_staging.put(lake, hour, [some]) for kind, some in common.items()},
        made.requests.num_rows,
        hour_job.settled(made),
        time.process_time() - began_s,
    )


def add(lake: Lake, hour: datetime, done: Sequence[Made]) -> Added:
    """Adds up the cells that shares have in common: those of no one replica. Raises LakeError."""
    began_s = time.process_time()
    rows = {kind: pa.concat_tables([lake_staging.get(lake, one.common[kind], [0]) for one in done]) for kind in lake_cells.KINDS}
    summed = lake_cells.together({kind: _frame(some) for kind, some in rows.items()})
    files = _files(lake, hour, {kind: hour_job.as_rows(kind, some) for kind, some in summed.items()})
    return Added(files, time.process_time() - began_s)


def put_in_place(lake: Lake, hour: datetime, done: Sequence[Made], cells: Added) -> Told:
    """Puts what all shares made in the place of what the lake had of an hour: a commit a table, its cells last. Raises LakeError."""
    for table in MADE:
        added = [file for files in (*(one.files for one in done), cells.files) for file in files.get(table, ())]
        if added or lake.files(table, hour, hour + HOUR):
            lake.put_in_place(table, added, [hour])
    cpu_s = cells.cpu_s + sum(one.cpu_s for one in done)
    return Told(hour, sum(one.requests for one in done), sum(one.settled for one in done), cpu_s)


def _files(lake: Lake, hour: datetime, rows: Mapping[str, pa.Table]) -> Files:
    return {table: lake.written(table, some, hour) for table, some in rows.items() if some.num_rows}


def left(whole: Whole, sources: Sequence[Sorted], reads: Sequence[Read], done: Sequence[Made]) -> list[Staged]:
    """The files that tasks left for each other."""
    of_reads = [staged for one in reads for staged in (one.requests, one.spoken, one.quarantine)]
    of_shares = [staged for one in done for staged in one.common.values()]
    return [whole.moved, *(file for one in sources for file in one.staged), *of_reads, *of_shares]


def _raw(lake: Lake, shared: Shared, number: int) -> Raw:
    homes = pl.Series([name for name, place in shared.shares.items() if place == number], dtype=pl.String)
    own = sorted(set(buckets(homes).tolist()))
    wanted = range(BUCKETS) if number == FIRST_SHARE else own
    requests = hours.as_stored(_together(lake, [one.requests for one in shared.reads], own))
    quarantine = [lake_staging.get(lake, one.quarantine, [0]) for one in shared.reads] if number == FIRST_SHARE else []
    return Raw(
        requests.filter(hour_packing.home().is_in(homes.implode())).sort("started_at", "request_id"),
        _frame(pa.concat_tables([columns("quarantine").empty_table(), *quarantine])),
        _frame(_of_share(_together(lake, [one.spoken for one in shared.reads], wanted), shared, number)),
        lake_taking.once("samples", _of_share(_gathered(lake, shared.sources, "samples", wanted), shared, number)),
    )


def _gathered(lake: Lake, sources: Sequence[Sorted], table: str, parts: Sequence[int]) -> pa.Table:
    """The rows of some parts of a table that was sorted."""
    staged = [file for one in sources if one.table == table for file in one.staged]
    return pa.concat_tables([columns_of(table).empty_table(), *(lake_staging.get(lake, one, parts) for one in staged)])


def _together(lake: Lake, staged: Sequence[Staged], parts: Sequence[int]) -> pa.Table:
    return pa.concat_tables([lake_staging.get(lake, one, parts) for one in staged])


def _of_share(rows: pa.Table, shared: Shared, number: int) -> pa.Table:
    """The rows of a share's replicas; those that no request names are of the first."""
    replicas = rows["replica"]
    if number != FIRST_SHARE:
        return rows.filter(pc.is_in(replicas, pa.array([name for name, place in shared.shares.items() if place == number], replicas.type)))
    others = pa.array([name for name, place in shared.shares.items() if place != FIRST_SHARE], replicas.type)
    return rows.filter(pc.invert(pc.is_in(replicas, others)))


def _frame(rows: pa.Table) -> pl.DataFrame:
    frame: pl.DataFrame = pl.DataFrame(rows)
    return frame
