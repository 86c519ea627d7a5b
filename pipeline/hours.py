"""Spans, imported requests and samples around an hour in; that hour's requests, settled, and their cells out. Plain functions.

An hour is worked out whole and from nothing but its inputs, by what settles requests in a store (`settle.settled`): whoever does it again
gets the same rows. Requests are settled by the block, the block before the hour included, as what it said of replicas counts for the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import polars as pl
import pyarrow as pa

from pipeline import assemble, guard, imported, sampling, segments, settle, surroundings
from pipeline.fresh import DATA_FAULTS, rows
from pipeline.guard_sums import SUMS
from pipeline.measure import BLOCK_S, Cells
from queries import over_rows, settling
from queries.lake_rows import conformed
from queries.lake_tables import columns

HOUR, BLOCK = timedelta(hours=1), timedelta(seconds=BLOCK_S)
SAMPLED_LATE = timedelta(seconds=sampling.WINDOW_S / 2)
SPOKEN = ("replica", "role", "span_id", "started_at", "ended_at")
Spans = Mapping[datetime, tuple[datetime, datetime]]
_GONE_ON = ("trap", "upstream", "replica", "column", "severity")


@dataclass(frozen=True, slots=True)
class Raw:
    """What is known around an hour: its requests and those beside them, assembled; engines' spans (columns SPOKEN), and `samples`."""

    requests: pl.DataFrame
    quarantine: pl.DataFrame
    spoken: pl.DataFrame
    samples: pa.Table


@dataclass(frozen=True, slots=True)
class Rules:
    """How requests are measured: the edges of buckets, and what makes cells of requests."""

    edges: segments.Edges
    measured: settle.Measure


@dataclass(frozen=True, slots=True)
class Made:
    """What became of an hour: rows of `requests`, `quarantine`, `suspicions` and `sampling`, and the cells of its blocks."""

    requests: pa.Table
    quarantine: pl.DataFrame
    suspicions: pl.DataFrame
    sampling: pl.DataFrame
    cells: list[Cells] = field(default_factory=list)


def assembled(spans: pl.DataFrame, loaded: pl.DataFrame, edges: segments.Edges) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(the requests of these spans and imported requests as `settling.take` gives them, by their start; rows of `quarantine`)."""
    found = _assembled(spans, edges)
    taken, odd = imported.finished(settling.paired(loaded), edges)
    requests = pl.concat([as_stored(rows(found.requests)), as_stored(rows(taken))], how="vertical_relaxed").sort("started_at", "request_id")
    return requests, pl.concat([found.quarantine, odd], how="diagonal_relaxed")


def made(hour: datetime, raw: Raw, rules: Rules, cutoff: datetime, spans_of: Spans | None = None) -> Made:
    """The requests that began within the hour, those that began by `cutoff` settled, as they would be in a store.

    Where `raw` is a share of an hour, `spans_of` says how long each block of the whole hour lasted (`block_spans`).
    """
    windows, until = _windows(hour, raw, cutoff), settled_until(hour, cutoff)
    lasted = block_spans(raw.requests, hour, until) if spans_of is None else spans_of
    done, quarantine, suspected, cells = [columns("requests").empty_table()], [raw.quarantine], [], []
    for since, block in _settled(raw, windows, rules, lasted, (hour - BLOCK, until)):
        if since < hour:
            continue
        done.append(as_rows(block.requests))  # rows are a part of what a frame of them takes, and a block's frame goes here
        quarantine += [block.checked.quarantine, *([settle.in_no_cell(block.unmeasured)] if len(block.unmeasured) else [])]
        suspected.append((since, block.checked.suspicions))
        cells += block.sums
    rest = raw.requests.filter(_within(hour) & (pl.col("started_at") >= until))
    return Made(
        pa.concat_tables([*done, as_rows(rest)]),
        pl.concat(quarantine, how="diagonal_relaxed").filter(_within(hour)),
        _prolonged(suspected),
        windows.filter(pl.col("window_started_at") >= hour),
        cells,
    )


def settled_until(hour: datetime, cutoff: datetime) -> datetime:
    """Before which moment the requests of an hour are settled."""
    return min(hour + HOUR, cutoff + timedelta(microseconds=1))


def block_spans(requests: pl.DataFrame, hour: datetime, until: datetime) -> Spans:
    """When the first request of each block of an hour, and of the block before it, began, and the last of its requests ended."""
    within = requests.filter((pl.col("started_at") >= hour - BLOCK) & (pl.col("started_at") < until))
    block = pl.col("started_at").dt.truncate(f"{BLOCK_S}s").alias("block")
    rows = within.group_by(block).agg(pl.col("started_at").min(), pl.col("ended_at").max()).iter_rows()
    return {block: (since, last) for block, since, last in rows}


def _assembled(spans: pl.DataFrame, edges: segments.Edges) -> assemble.Assembled:
    """The requests of these spans; a trace that cannot be assembled holds up no other and is told in `quarantine`."""
    try:
        return assemble.assemble(spans, edges)
    except DATA_FAULTS as error:
        traces = spans["trace_id"].unique().sort()
        if len(traces) == 1:
            reason = f"the trace cannot be assembled: {type(error).__name__}: {error}"
            return _left_out(spans, assemble.assemble(spans.clear(), edges), reason)
        first = pl.col("trace_id").is_in(traces[: len(traces) // 2].implode())
        one, other = (_assembled(spans.filter(some), edges) for some in (first, ~first))
        both = [(one.requests, other.requests), (one.quarantine, other.quarantine), (one.open_keys, other.open_keys)]
        return assemble.Assembled(*(pl.concat(some, how="diagonal_relaxed") for some in both))


def _left_out(spans: pl.DataFrame, nothing: assemble.Assembled, reason: str) -> assemble.Assembled:
    row = spans.select(pl.col("trace_id").first().alias("request_id"), pl.col("trace_id").first(), pl.col("started_at").min())
    told = row.with_columns(pl.lit("*").alias("column"), pl.lit(None, pl.String).alias("value"), pl.lit(reason).alias("reason"))
    return assemble.Assembled(nothing.requests, told, nothing.open_keys)


def as_stored(requests: pa.Table) -> pl.DataFrame:
    """Assembled rows with every column of the table, as `settling.take` gives them."""
    frame: pl.DataFrame = pl.DataFrame(conformed(requests, columns("requests")))
    return settling.paired(frame).with_columns(pl.lit(False).alias("is_settled"))


def _windows(hour: datetime, raw: Raw, cutoff: datetime) -> pl.DataFrame:
    """Rows of `sampling` of the windows that had ended by `cutoff`, of the hour and shortly before it."""
    asked = {
        "window_s": sampling.WINDOW_S,
        "since": hour - 2 * BLOCK,
        "until": min(hour + HOUR, settle.block_start(cutoff + settle.LAG - SAMPLED_LATE)),
    }
    counted = over_rows.answered("sampling_counted", {"samples": raw.samples}, asked)
    if counted.is_empty():
        return pl.DataFrame(schema=sampling.SCHEMA)
    return sampling.sampled(over_rows.answered("sampling_spans", {"sampling_windows": counted, "near_spans": raw.spoken}))


def _settled(
    raw: Raw, windows: pl.DataFrame, rules: Rules, lasted: Spans, period: tuple[datetime, datetime]
) -> Iterator[tuple[datetime, settle.Settled]]:
    """(the start of a block, its requests settled), block by block in order."""
    since, until = period
    asked = {"since": since - surroundings.FIRST, "until": until + HOUR}
    said = over_rows.answered("settle_samples", {"samples": raw.samples}, asked)
    others, sums, began = raw.requests.select(surroundings.AROUND), pl.DataFrame(schema=SUMS), pl.col("started_at")
    for block in sorted(lasted):
        some = raw.requests.filter((began >= block) & (began < min(block + BLOCK, until)))
        if some.is_empty():
            continue
        others = others.join(some.select(settling.KEY), on=settling.KEY, how="anti")
        found = settle.settled(some, _known(lasted[block], others, said, windows, sums), rules.edges, rules.measured)
        others = pl.concat([others, found.requests.select(surroundings.AROUND)], how="vertical_relaxed")
        sums = found.checked.sums
        yield block, found


def as_rows(requests: pl.DataFrame) -> pa.Table:
    """Requests as rows of the table."""
    return conformed(rows(requests), columns("requests"))


def _known(
    lasted: tuple[datetime, datetime], others: pl.DataFrame, said: pl.DataFrame, windows: pl.DataFrame, sums: pl.DataFrame
) -> surroundings.Surroundings:
    """What is known around the requests of a block, as `surroundings.read` finds it in a store."""
    since, until = lasted
    first, last = since - surroundings.FIRST, until + surroundings.LAST
    return surroundings.Surroundings(
        others.filter((pl.col("started_at") <= until) & (pl.col("ended_at") >= since)),
        said.filter((pl.col("observed_at") >= first) & (pl.col("observed_at") <= last)),
        _sampled(windows, since),
        sums.filter((pl.col("since") >= first) & (pl.col("until") <= until)),
    )


def _sampled(windows: pl.DataFrame, moment: datetime) -> list[str]:
    """The replicas of whose requests only a part sent spans when it was last looked at by a moment."""
    last = windows.filter(pl.col("window_started_at") <= moment).sort("window_started_at").group_by("replica").last()
    return last.filter(pl.col("state").is_in(["sampled", "few"]))["replica"].sort().to_list()


def _prolonged(found: Sequence[tuple[datetime, pl.DataFrame]]) -> pl.DataFrame:
    """One row per replica, trap and column of what was suspected in the blocks of an hour."""
    nothing = pl.DataFrame(schema=guard.SUSPICIONS).with_columns(pl.lit(None, pl.Datetime("us", "UTC")).alias("suspected_at"))
    rows_of = [rows.with_columns(pl.lit(since, pl.Datetime("us", "UTC")).alias("suspected_at")) for since, rows in found]
    together = pl.concat([nothing, *rows_of], how="vertical_relaxed").group_by(_GONE_ON, maintain_order=True)
    lasting = [pl.col("since").min(), pl.col("until").max(), pl.col("n").sum(), pl.col("seen").last(), pl.col("suspected_at").min()]
    return together.agg(lasting).select(nothing.columns)


def _within(hour: datetime) -> pl.Expr:
    return (pl.col("started_at") >= hour) & (pl.col("started_at") < hour + HOUR)
