"""A store and a lever in, per segment whether the lever may be advised for more traffic and what lacks out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from leverwatch import lever_effects
from leverwatch.lever_questions import GAIN_ON
from pipeline import lever_cells
from pipeline.believed import REFUSED
from pipeline.evidence_families import NO_GAIN, NULLS
from pipeline.inference import strata
from pipeline.inference.contrast import LEAST_REQUESTS
from pipeline.inference.multiplicity import bonferroni_threshold
from pipeline.lever_cells import METRICS, SIGN, prepared
from pipeline.measure import BLOCK_S, REQUESTS
from pipeline.widening import ALPHA, Blocks, advised
from queries import files
from queries.report import ReportError
from queries.store import Store

BLOCK = timedelta(seconds=BLOCK_S)
WEEK, FARTHEST = timedelta(days=7), timedelta(days=14)
PRIMARY = "net_itl_s"
GUARD_M = bonferroni_threshold(1, 86_400 / BLOCK_S, ALPHA)
LIMIT_SUMS = 200_000  # segments times blocks that are in memory together
TIMES = pl.Datetime("us", "UTC")
SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "lever": pl.String, "segment": pl.String, "may_widen": pl.Boolean, "missing": pl.List(pl.String), "since": TIMES, "until": TIMES,
    "elapsed_h": pl.Float64, "needed_h": pl.Float64, "blocks_by_load": pl.List(pl.Int64), "peak_share": pl.Float64,
    "gain_low": pl.Float64, "peak_gain_low": pl.Float64, "gain_asked": pl.Float64, "guard_log_m": pl.Float64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Allowed:
    """Whether requests are split otherwise than meant, by what ratio the null is widened, and why the contrast may not decide."""

    split_off: bool
    margin: float
    missing: tuple[str, ...]


def ready(store: Store, lever: str, segments: Sequence[str], until: datetime) -> dict[str, str]:
    """Of these segments those that may get more traffic as of the block that ends at `until`, with why; none where a newer one is known."""
    rows = widening(store, lever, segments=segments).filter(pl.col("may_widen"), pl.col("until") == until)
    return {row["segment"]: _why(row) for row in rows.iter_rows(named=True)}


def widening(store: Store, lever: str, gain_on: float = GAIN_ON, segments: Sequence[str] | None = None) -> pl.DataFrame:
    """One row per segment with a control arm (SCHEMA): `may_widen`, and in `missing` each thing that lacks, in numbers.

    Times in hours, gains as ratios; `blocks_by_load` counts blocks with both arms in each tenth of the last week's load. The epoch begins
    with the last change of the lever's state or of the engine's version, the segment's first block or 14 days ago, whichever is latest.
    `gain_asked` is `gain_on` and what the null is widened by where control's replicas are fixed.

    Raises:
        ReportError: there is no such lever, or `gain_on` is no ratio from -1 to 1.
    """
    lever_effects.known(lever, (), ())
    if not -1 <= gain_on <= 1:
        msg = f"gain_on {gain_on:g}: a ratio from -1 to 1 is taken, such as 0.05"
        raise ReportError(msg)
    newest = store.frame(files.question("effect_newest"), {"lever": lever}).filter(pl.col("basis") == "control")
    if newest.is_empty():
        return pl.DataFrame(schema=SCHEMA)
    until: datetime = max(newest["until"].to_list())
    newest = newest.filter(pl.col("until") > until - timedelta(days=1))
    if segments is not None:
        newest = newest.filter(pl.col("segment").is_in(segments))
        if newest.is_empty():
            return pl.DataFrame(schema=SCHEMA)
    segments = newest["segment"].unique().sort().to_list()
    changed = dict(store.frame(files.question("widening_epochs"), {"lever": lever, "segments": segments}).iter_rows())
    guards, allowed = _guards(newest), _allowed(newest)
    rows: list[dict[str, Any]] = []
    for some in _chunks(segments):
        for segment, blocks, since in _blocks(store, lever, some, changed, until):
            guard, may = guards.get(segment, -np.inf), allowed[segment]
            asked = gain_on + may.margin
            told, seen = advised(blocks, gain_on=asked, guard_log_m=guard, guard_threshold=GUARD_M, split_off=may.split_off)
            rows.append({
                "lever": lever, "segment": segment, "since": since, "until": until,
                "may_widen": told.may and not may.missing, "missing": [*told.missing, *may.missing],
                "elapsed_h": seen.elapsed_s / 3600, "needed_h": seen.needed_s / 3600, "blocks_by_load": seen.blocks_per_decile.tolist(),
                "peak_share": seen.peak_share, "gain_low": _known(seen.gain_low), "peak_gain_low": _known(seen.peak_gain_low),
                "gain_asked": asked, "guard_log_m": _known(guard),
            })  # fmt: skip
    return pl.DataFrame(rows, schema=SCHEMA)


def _why(row: Mapping[str, Any]) -> str:
    """`may get more traffic: pays by 12 % at least over 26 h, and by 8 % in the busiest blocks`."""
    gains = f"pays by {100 * row['gain_low']:.0f} % at least over {row['elapsed_h']:.0f} h"
    peak = f", and by {100 * row['peak_gain_low']:.0f} % in the busiest blocks" if row["peak_gain_low"] is not None else ""
    return f"may get more traffic: {gains}{peak}"


def _blocks(
    store: Store, lever: str, segments: Sequence[str], changed: dict[str, datetime], until: datetime
) -> Iterator[tuple[str, Blocks, datetime]]:
    """Each segment with its blocks of the last 14 days and the start of its epoch."""
    asked = {"lever": lever, "since": until - FARTHEST, "until": until, "segments": list(segments), "metrics": [REQUESTS, *lever_cells.RAW]}
    cells = store.frame(files.question("effect_cells"), asked)
    if cells.is_empty():
        return
    first: datetime = min(cells["block_started_at"].to_list())
    starts = [first + BLOCK * number for number in range((until - first) // BLOCK)]
    arms = {name: lever_cells.arm(cells, name, segments, starts, (REQUESTS,)).n[..., 0] for name in cells["arm"].unique().to_list()}
    among = lever_cells.groups(segments, None)
    mine, theirs = (lever_cells.arm(cells, name, segments, starts) for name in ("treated", "control"))
    found = strata.series(mine, theirs, np.ones(len(segments)), among.levels, prepared, SIGN, LEAST_REQUESTS)
    metric, nobody = METRICS.index(PRIMARY), np.zeros((len(segments), len(starts)))
    treated, control = (arms.get(name, nobody) for name in ("treated", "control"))
    load = sum(arms.values(), nobody)
    for place, segment in enumerate(segments):
        both = np.flatnonzero(np.minimum(treated[place], control[place]))
        since = max(changed.get(segment, first), starts[int(both[0])] if len(both) else until)
        inside = np.array([start >= since for start in starts])
        share = (found.difference[place, :, metric], found.share[place, :, metric])
        yield segment, Blocks(load[place], treated[place], control[place], *share, inside, BLOCK_S), since


def _guards(newest: pl.DataFrame) -> dict[str, float]:
    """The highest logarithm of M, by segment, that a metric beside net ITL is worse than control."""
    logs = newest.filter(pl.col("metric") != PRIMARY, pl.col("evidence_below").list.len() == len(NULLS))
    told = logs.select("segment", pl.col("evidence_below").list.get(NO_GAIN, null_on_oob=True).alias("log_m")).drop_nulls()
    return dict(told.group_by("segment").agg(pl.col("log_m").max()).iter_rows())


def _allowed(newest: pl.DataFrame) -> dict[str, _Allowed]:
    """What each segment's contrast with control may say, by its replicas and the split of its requests."""
    primary = newest.sort(pl.col("metric") != PRIMARY).unique("segment", keep="first", maintain_order=True)
    return {
        row["segment"]: _Allowed(
            bool(row["sample_ratio_off"]),
            row["margin"] or 0.0,
            (f"control may not decide: {row['permission_reason']}",) if row["permission"] in REFUSED else (),
        )
        for row in primary.iter_rows(named=True)
    }


def _chunks(segments: Sequence[str]) -> Iterator[Sequence[str]]:
    at_once = max(1, LIMIT_SUMS // (FARTHEST // BLOCK))
    for first in range(0, len(segments), at_once):
        yield segments[first : first + at_once]


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
