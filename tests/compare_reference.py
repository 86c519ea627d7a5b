"""Rows of `cells` in, rows of `effects` out, one lever and segment after another: what the arrays of `pipeline.compare` are held to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.compare import ALSO_CONTRASTED, CONTRASTED, METHOD, OF_BOTH_ARMS, PREMISES, WINDOW_BLOCKS
from pipeline.guard_effects import with_traps
from pipeline.inference.charge import added_s
from pipeline.measure import BLOCK_S, REQUESTS
from pipeline.metrics import by_name
from pipeline.window_contrasts import MIN_REQUESTS_PER_ARM, avt_radius

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Arm:
    """One arm's sums of one metric in each block of a window."""

    num: Reals
    den: Reals
    n: Reals
    requests: Reals

    def ratio(self) -> Reals:
        return _divided(self.num, self.den)


def effects(cells: pl.DataFrame, until: datetime) -> pl.DataFrame:
    """One row per lever, segment and metric for the window of blocks that ends at `until` (columns of `effects`).

    `cells` holds that window's cells of all arms. gain is a ratio, positive when the lever helps.
    """
    since = until - timedelta(seconds=BLOCK_S * WINDOW_BLOCKS)
    keys = ["lever", "segment", "metric", "arm", "block_started_at"]
    summed = cells.group_by(keys).agg(pl.col("n", "num", "den").sum())
    rows = []
    for (lever, segment), group in summed.group_by(["lever", "segment"], maintain_order=True):
        rows.extend(_segment_rows(str(lever), str(segment), group, since, until))
    schema = {"since": pl.Datetime("us", "UTC"), "until": pl.Datetime("us", "UTC")}
    return with_traps(pl.DataFrame(rows, infer_schema_length=None, schema_overrides=schema), summed)


def _segment_rows(lever: str, segment: str, group: pl.DataFrame, since: datetime, until: datetime) -> list[dict[str, Any]]:
    blocks = group["block_started_at"].unique().sort().to_list()
    arms = {arm: _arm_sums(group.filter(pl.col("arm") == arm), blocks) for arm in group["arm"].unique().to_list()}
    treated, control = arms.get("treated"), arms.get("control")
    if treated is None:
        return []
    also = [name for name in ALSO_CONTRASTED if treated[name].n.sum() > 0]
    rows = [_contrast(name, treated, control) for name in (*CONTRASTED, *also)] + [_premise(name, treated) for name in PREMISES]
    common = {"lever": lever, "segment": segment, "arm_a": "treated", "since": since, "until": until, "method": METHOD}
    return [{**common, **row} for row in rows if row["basis"] != "premise" or row["n_a"] > 0]


def _arm_sums(rows: pl.DataFrame, blocks: list[datetime]) -> dict[str, _Arm]:
    place = {block: index for index, block in enumerate(blocks)}
    sums: dict[str, npt.NDArray[np.float64]] = {}
    for metric, block, n, num, den in rows.select("metric", "block_started_at", "n", "num", "den").iter_rows():
        table = sums.setdefault(metric, np.zeros((3, len(blocks))))
        table[:, place[block]] += (n, num, den)
    empty = np.zeros((3, len(blocks)))
    requests = sums.get(REQUESTS, empty)[0]
    return {name: _arm(sums.get(name, empty), requests) for name in (*OF_BOTH_ARMS, *PREMISES)}


def _arm(table: Reals, requests: Reals) -> _Arm:
    n, num, den = table
    return _Arm(num, den, n, requests)


def _contrast(name: str, treated: dict[str, _Arm], control: dict[str, _Arm] | None) -> dict[str, Any]:
    """One metric's paired contrast: control's blocks weigh as treated's do, so that gain = 1 - value_a / value_b.

    Net ITL charges treated with the TTFT that it adds over control.
    """
    base = "tpot_s" if name == "net_itl_s" else name
    arm_a = treated[base]
    arm_b = control[base] if control else None
    busy_a = arm_a.num
    if name == "net_itl_s" and control:
        first, other = treated["ttft_s"], control["ttft_s"]
        busy_a = busy_a + arm_a.n * added_s(first.n, first.num, other.n, other.num)
    row = _plain_row(name, _Arm(busy_a, arm_a.den, arm_a.n, arm_a.requests))
    if arm_b is None:
        return {**row, "basis": "none", "note": "no control arm: nothing to compare with"}
    paired = (arm_a.n >= MIN_REQUESTS_PER_ARM) & (arm_b.n >= MIN_REQUESTS_PER_ARM)
    a, b = _divided(busy_a, arm_a.den), arm_b.ratio()
    paired &= np.isfinite(a) & np.isfinite(b)
    count = int(paired.sum())
    row |= {"arm_b": "control", "n_b": int(arm_b.n[paired].sum()), "n_a": int(arm_a.n[paired].sum()), "blocks": count, "basis": "control"}
    row["coverage"] = min(row["coverage"], _coverage(arm_b))
    if not count:
        least = int(min(arm_a.n.max(initial=0), arm_b.n.max(initial=0)))
        return {**row, "note": f"no block has {MIN_REQUESTS_PER_ARM} requests in each arm; at most {least}"}
    den, level = arm_a.den[paired], b[paired]
    expected = den * level
    row |= {"value_a": float(busy_a[paired].sum() / den.sum()), "value_b": float(expected.sum() / den.sum())}
    if not expected.sum() > 0:
        return {**row, "note": "control's value is 0: no ratio of the two"}
    return {**row, **_interval(name, busy_a[paired], expected)}


def _interval(name: str, got: Reals, expected: Reals) -> dict[str, float | None]:
    """The gain of what treated's blocks got over what control's level gives the same requests, and its anytime-valid interval."""
    sign = -1.0 if by_name()[name].better == "higher" else 1.0
    share = len(got) / expected.sum()
    gain = sign * float(1 - got.sum() / expected.sum())
    rest = (sign * (expected - got) - gain * expected) * share
    radius = avt_radius(len(got), float((rest**2).sum() / (len(got) - 1))) if len(got) > 2 else float("inf")
    known = np.isfinite(radius)
    return {"gain": gain, "gain_low": gain - radius if known else None, "gain_high": gain + radius if known else None}


def _premise(name: str, treated: dict[str, _Arm]) -> dict[str, Any]:
    return {**_plain_row(name, treated[name]), "basis": "premise", "note": None}


def _plain_row(name: str, arm: _Arm) -> dict[str, Any]:
    total = float(arm.den.sum())
    return {
        "metric": name,
        "arm_b": None,
        "blocks": int((arm.n > 0).sum()),
        "n_a": int(arm.n.sum()),
        "n_b": 0,
        "value_a": float(arm.num.sum() / total) if total > 0 else None,
        "value_b": None,
        "gain": None,
        "gain_low": None,
        "gain_high": None,
        "coverage": _coverage(arm),
        "note": None,
    }


def _coverage(arm: _Arm) -> float:
    asked = float(arm.requests.sum())
    return float(arm.n.sum()) / asked if asked else 0.0


def _divided(num: Reals, den: Reals) -> Reals:
    return np.divide(num, den, out=np.full_like(num, np.nan), where=den > 0)
