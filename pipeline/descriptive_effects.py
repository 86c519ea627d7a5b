"""Sums of a lever's arms by keys that are known only after treatment in, rows that describe how the arms differ within each out.

A lever changes these keys: it makes hits of misses, and ends answers sooner. So requests of one value are other requests in each arm, and
their difference is no effect. It is shown without an interval and never judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import polars as pl

from pipeline.metrics import by_name
from pipeline.segments import canonical
from pipeline.standardized_effects import CONTROL, SCHEMA, TREATED

METHOD = "descriptive"
METRICS = {"tpot_s": "tpot", "ttft_s": "ttft", "error_rate": "error", "e2e_s": "e2e"}


def effects(sums: pl.DataFrame, by: Sequence[str], after: Sequence[str], lever: str, since: datetime, until: datetime) -> pl.DataFrame:
    """One row per group and metric with requests of both arms (columns of `standardized_effects.SCHEMA`), without an interval.

    `after` are those of the keys `by` that are known only after treatment.
    """
    inside = sums.filter(pl.col("arm").is_in([TREATED, CONTROL])).drop_nulls(list(by))
    summed = inside.group_by([*by, "arm"]).agg(pl.col("^.*_(n|num|den)$").sum()).sort([*by, "arm"])
    rows = []
    for values, group in summed.group_by(list(by), maintain_order=True):
        arms = {row["arm"]: row for row in group.iter_rows(named=True)}
        if len(arms) == 2:
            segment = canonical(dict(zip(by, (str(value) for value in values), strict=True)))
            rows += [_row(arms, metric, name) | {"segment": segment} for metric, name in METRICS.items()]
    common = {"lever": lever, "arm_a": TREATED, "arm_b": CONTROL, "since": since, "until": until, "blocks": 0, "strata": 0}
    said = f"{', '.join(after)} is known only after treatment: the arms' requests differ, which is shown and no effect"
    common |= {"is_misleading": False, "method": METHOD, "basis": METHOD, "note": said}
    return pl.DataFrame([common | row for row in rows], schema=SCHEMA)


def _row(arms: dict[str, dict[str, Any]], metric: str, name: str) -> dict[str, Any]:
    treated, control = (arms[arm] for arm in (TREATED, CONTROL))
    value_a, value_b = (arm[f"{name}_num"] / arm[f"{name}_den"] if arm[f"{name}_den"] else None for arm in (treated, control))
    sign = -1.0 if by_name()[metric].better == "higher" else 1.0
    gain = sign * (1 - value_a / value_b) if value_a is not None and value_b else None
    counts = {"n_a": int(treated[f"{name}_n"]), "n_b": int(control[f"{name}_n"])}
    return {"metric": metric, **counts, "value_a": value_a, "value_b": value_b, "gain": gain, "pooled_gain": gain, "coverage": 1.0}
