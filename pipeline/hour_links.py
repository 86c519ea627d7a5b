"""A lake and an hour in, which of its traces have to be read together out: those that state the same id, over any number of ids.

An hour that is too large for one worker is read in parts by trace. A trace is of the part that its id's hash names, unless it is linked
with others: then all of them are of the part of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from pipeline.hour_spans import FAR, HOUR
from pipeline.joining import HEAD_ROLES, components
from queries.lake import Lake
from queries.lake_files import LakeFile
from queries.lake_rows import conformed
from queries.lake_tables import columns

IDS = ("trace_id", "role", "joins_by_request_id", "signals.request_id", "signals.join_key")
SEEKING = ("started_at", "ended_at", "parent_span_id", "signals.phase", "signals.pool", "signals.samples_n", "signals.output_tokens")
MOVED = pa.schema([("trace", pa.uint64()), ("part", pa.uint32())])
_LINKS = {"trace": pl.UInt64, "key": pl.UInt64}

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Linked:
    """What is to be known of a whole hour before parts of it are read: when the last of its spans ends (None: it has none), and which
    traces are of another part than their hash says (columns of MOVED)."""

    until: datetime | None
    moved: pa.Table


def linked(lake: Lake, hour: datetime, parts: int) -> Linked:
    """What links the traces around an hour that is read in so many parts.

    Raises:
        LakeError: the lake cannot be read.
    """
    files = lake.files("spans", hour - FAR, hour + HOUR + FAR)
    ends: list[datetime] = []
    sought = [pl.Series(dtype=pl.UInt64)]
    for spans in _bits(lake, files, (*IDS, *SEEKING)):
        end = spans.filter((pl.col("started_at") >= hour) & (pl.col("started_at") < hour + HOUR))["ended_at"].max()
        ends += [end] if isinstance(end, datetime) else []
        sought.append(_links(spans, _may_seek())["key"].unique())
    keys = pl.concat(sought).unique()
    bits = _bits(lake, files, IDS) if len(keys) else ()
    links = (_links(spans).filter(pl.col("key").is_in(keys.implode())) for spans in bits)
    return Linked(max(ends, default=None), moved(pl.concat([pl.DataFrame(schema=_LINKS), *links]), parts))


def moved(links: pl.DataFrame, parts: int) -> pa.Table:
    """The traces (columns of MOVED) whose part is not that of their own hash, of links (columns trace and key, both hashes)."""
    shared = links.unique().filter(pl.col("trace").n_unique().over("key") > 1)
    rows = shared["trace"].unique().reinterpret(signed=True).sort().to_numpy()
    signed = shared.with_columns(pl.col("trace").reinterpret(signed=True))
    edges = signed.select(pl.col("trace").min().over("key").alias("one"), pl.col("trace").alias("other"))
    firsts = components(rows, [edges.filter(pl.col("one") != pl.col("other"))]) if len(rows) else rows
    traces, part = rows.view(np.uint64), firsts.view(np.uint64) % np.uint64(parts)
    goes = part != traces % np.uint64(parts)
    return pa.table([pa.array(traces[goes]), pa.array(part[goes].astype(np.uint32))], schema=MOVED)


def parts_of(traces: Hashes, moved: pa.Table, parts: int) -> npt.NDArray[np.int64]:
    """The part of each of some traces, by the hashes of their ids."""
    found = (traces % np.uint64(parts)).astype(np.int64)
    if moved.num_rows:
        named = np.asarray(moved["trace"])
        order = np.argsort(named)
        places = np.searchsorted(named, traces, sorter=order).clip(max=len(named) - 1)
        is_moved = named[order[places]] == traces
        found[is_moved] = np.asarray(moved["part"])[order[places[is_moved]]]
    return found


def hashes(traces: pa.ChunkedArray) -> Hashes:
    """The hashes of ids. They are the same wherever the same version of Polars runs."""
    found: Hashes = pl.Series(traces).hash().to_numpy()
    return found


def _bits(lake: Lake, files: Sequence[LakeFile], names: Sequence[str]) -> Iterator[pl.DataFrame]:
    """These columns of `spans` and fields of its signals, a few rows at a time; null where a file of an older version lacks one."""
    shape = columns("spans")
    fields = [name.partition(".")[2] for name in names if "." in name]
    asked = [shape.field(name) for name in names if "." not in name]
    asked.append(pa.field("signals", pa.struct([shape.field("signals").type.field(name) for name in fields])))
    for bit in lake.bits("spans", names, files):
        yield pl.DataFrame(conformed(bit, pa.schema(asked)))


def _links(spans: pl.DataFrame, which: pl.Expr | None = None) -> pl.DataFrame:
    """(trace, key), both hashes, of the ids that heads, or these of them, state (`joining.keys_of`)."""
    heads = pl.col("role").is_in(HEAD_ROLES) & (pl.lit(value=True) if which is None else which)
    told = spans.unnest("signals").filter(heads).with_columns(pl.col("trace_id").hash().alias("trace"))
    own = pl.when("joins_by_request_id").then("request_id").otherwise("join_key").alias("join_key")
    keyed = told.with_columns(own).filter(pl.col("join_key").is_not_null())
    both = [keyed.select("trace", pl.col(name).hash().alias("key")) for name in ("join_key", "request_id")]
    named = [both[0], both[1].filter(keyed["request_id"].is_not_null())]
    return pl.concat(named).unique()


def _may_seek() -> pl.Expr:
    """Whether a head may ask for what another trace tells (`joining.is_seeking`), also by what spans above it say: rather too often."""
    is_leg = pl.any_horizontal(pl.col("phase", "pool", "parent_span_id").is_not_null())
    is_one_of_several = (pl.col("samples_n").fill_null(1) >= 2) | (pl.col("output_tokens") == 1).fill_null(value=False)
    return (pl.col("role") != "engine") | is_leg | is_one_of_several
