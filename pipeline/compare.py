"""Rows of `cells` in, rows of `effects` out: each lever's treated arm against control, block by block.

These are the numbers that people see: the gain over a trailing window, with an anytime-valid t interval. `evidence.py` decides.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import polars as pl

from pipeline.guard_effects import with_traps
from pipeline.inference.charge import added_s
from pipeline.measure import BLOCK_S, REQUESTS
from pipeline.metrics import by_name
from pipeline.window_contrasts import alone, contrasted
from pipeline.window_sums import Arm, Window, window

WINDOW_BLOCKS = 24
METHOD = "paired_blocks_window"
CONTRASTED = ("net_itl_s", "tpot_s", "ttft_s", "error_rate")
"""Of these there is a row of every pair, if only to say what is missing."""
ALSO_CONTRASTED = ("e2e_s", "queue_s", "gpu_s_per_output_token")
PREMISES = (
    "draft_acceptance",
    "acceptance_length",
    "skipped_token_ratio",
    "cache_hit_rate",
    "interconnect_efficiency",
    "batch_at_admission",
    "skipped_of_attainable",
    "attainable_skip_ceiling",
    "conditional_acceptance_at_1",
    "conditional_acceptance_at_2",
    "kv_usage",
    "preemptions_per_1k_requests",
    "gpu_memory_headroom",
    "communication_fraction",
    "collective_efficiency",
    "kv_transfer_exposed_share",
    "queue_share",
    "transfer_share",
    "prefill_share",
    "concurrency",
    "transfer_to_prefill_ratio",
    "handover_to_prefill_ratio",
)
"""What is told of treated alone, where it was measured."""
SPREADS = ("affinity_load_spread",)
"""The same of what is uneven between replicas; it takes their own sums (`spreads.py`)."""
OF_BOTH_ARMS = (REQUESTS, *CONTRASTED, *ALSO_CONTRASTED)
OF_TREATED = (*PREMISES, *SPREADS)
"""What is read of cells: the former of both arms, the latter of treated alone."""
_COLUMNS = (
    "lever", "segment", "metric", "arm_a", "arm_b", "since", "until", "blocks", "n_a", "n_b", "value_a", "value_b", "gain", "gain_low",
    "gain_high", "method", "basis", "coverage", "note",
)  # fmt: skip


def effects(cells: pl.DataFrame, until: datetime, spread: pl.DataFrame | None = None) -> pl.DataFrame:
    """One row per lever, segment and metric for the window of blocks that ends at `until` (columns of `effects`).

    `cells` holds that window's cells of all arms, `spread` what replicas have of SPREADS: lever, segment, metric and `value`. gain is a
    ratio, positive when the lever helps.
    """
    held = window(cells)
    made = [*(_contrast(held, name) for name in (*CONTRASTED, *ALSO_CONTRASTED)), *(_premise(held, name) for name in PREMISES)]
    made += [_spread(held, name, spread) for name in SPREADS if spread is not None and len(spread)]
    since = pl.lit(until - timedelta(seconds=BLOCK_S * WINDOW_BLOCKS), pl.Datetime("us", "UTC"))
    common = (since.alias("since"), pl.lit(until, pl.Datetime("us", "UTC")).alias("until"), pl.lit(METHOD).alias("method"))
    rows = pl.concat(made).with_columns(pl.lit("treated").alias("arm_a"), *common).select(_COLUMNS)
    return with_traps(rows, cells)


def _contrast(held: Window, name: str) -> pl.DataFrame:
    """One metric's rows. Net ITL charges treated with the TTFT that it adds over control."""
    treated, control = held.arms("tpot_s" if name == "net_itl_s" else name)
    if name == "net_itl_s":
        treated = _charged(treated, *held.arms("ttft_s"))
    rows = _named(held, name, contrasted(treated, control, held.has_control, -1.0 if by_name()[name].better == "higher" else 1.0))
    return rows if name in CONTRASTED else rows.filter(pl.Series((treated.n > 0).any(axis=1)))


def _charged(busy: Arm, first: Arm, other: Arm) -> Arm:
    return replace(busy, num=busy.num + busy.n * added_s(first.n, first.num, other.n, other.num))


def _premise(held: Window, name: str) -> pl.DataFrame:
    return _named(held, name, alone(held.arms(name)[0])).filter(pl.col("n_a") > 0)


def _spread(held: Window, name: str, spread: pl.DataFrame) -> pl.DataFrame:
    """Rows of a metric whose value is not one of sums over all replicas."""
    rows = _premise(held, name)
    told = rows.join(spread, on=["lever", "segment", "metric"], how="left", maintain_order="left")
    return told.with_columns(pl.col("value").alias("value_a")).select(rows.columns)


def _named(held: Window, name: str, rows: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([held.names, rows], how="horizontal").with_columns(pl.lit(name).alias("metric"))
