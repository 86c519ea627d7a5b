"""A switch of a lever and sums before and after it in, whether it helped out: shown, never acted on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import polars as pl
from scipy.special import stdtrit

from alerts import block_sums, usage, wording
from alerts.block_sums import BlockSums, Sum
from alerts.chain import Policy, PremiseLost, code_of
from alerts.effects import effect_name
from pipeline.metrics import by_name
from queries import files
from queries.store import Store

BLOCK, BLOCKS, LEAST_BLOCKS = usage.BLOCK, 12, 3
LIMIT_ROWS = 100  # a round
PEER = "switched off in place it may be slower than never switched on (vllm-project/vllm#5000)"
_TIME = pl.Datetime("us", "UTC")
_ROW: dict[str, pl.DataType] = {
    **dict.fromkeys(("flip_id", "policy", "lever", "segment"), pl.String()),
    "switched_at": _TIME,
    "metric": pl.String(),
    **dict.fromkeys(("before", "control_before", "after", "gain", "low", "high"), pl.Float64()),
    "helped": pl.Boolean(),
    "said": pl.String(),
    "checked_at": _TIME,
}


class Change(NamedTuple):
    """How one level compares with another: the gain as a ratio, positive is better, and its interval, None where it has none."""

    gain: float
    low: float | None
    high: float | None


class Check(NamedTuple):
    """What a switch did: levels in the metric's unit, and whether it helped, None where that cannot be told."""

    metric: str
    before: float | None
    control_before: float | None
    after: float | None
    change: Change | None
    helped: bool | None
    said: str


def change(before: Sequence[Sum], after: Sequence[Sum], better: str) -> Change | None:
    """The gain of the later blocks over the earlier ones, with a 95 % interval by blocks from three of each on; None without a level."""
    first, then = _level(before), _level(after)
    if not first or then is None:
        return None
    sign = -1.0 if better == "higher" else 1.0
    ratio, spread = then / first, _relative_variance(before) + _relative_variance(after)
    fewest = min(len(before), len(after))
    if fewest < LEAST_BLOCKS or not ratio or not math.isfinite(spread):
        return Change(sign * (1.0 - ratio), None, None)
    width = float(stdtrit(fewest - 1, 0.975)) * math.sqrt(spread)
    ends = sorted(sign * (1.0 - ratio * math.exp(side * width)) for side in (-1.0, 1.0))
    return Change(sign * (1.0 - ratio), ends[0], ends[1])


def check(sums: BlockSums, lever: str, metric: str, switched_at: datetime, decided_at: datetime) -> Check:
    """What the hour after a switch was like, against treated and control in the hour before it."""
    before, control = (sums.within(arm, metric, switched_at - BLOCKS * BLOCK, switched_at) for arm in ("treated", "control"))
    after = sums.within("any", metric, decided_at, decided_at + BLOCKS * BLOCK)
    better = by_name()[metric].better
    found = change(before, after, better)
    helped = (
        None if found is None or found.low is None or found.high is None else True if found.low > 0 else False if found.high < 0 else None
    )
    against = change(control, after, better)
    levels = (_level(before), _level(control), _level(after))
    return Check(metric, *levels, found, helped, _said(lever, metric, levels, found, helped, against))


def follow(store: Store, policies: Sequence[Policy], until: datetime) -> int:
    """Checks each switch that lies an hour back by a moment of event time; gives how many rows it wrote."""
    asked = {"until": until - BLOCKS * BLOCK, "limit_rows": LIMIT_ROWS}
    by_name = {policy.name: policy for policy in policies}
    rows = [
        _row(store, by_name[due["policy"]], due)
        for due in store.frame(files.question("after_check_due"), asked).iter_rows(named=True)
        if due["policy"] in by_name
    ]
    if rows:
        with store.write() as transaction:
            transaction.insert("after_checks", pl.DataFrame(rows, schema=_ROW))
    return len(rows)


def listed(store: Store, lever: str | None = None, limit_rows: int = 1000) -> pl.DataFrame:
    """One row per switch that was checked, the newest first. Columns of `after_checks`."""
    where = "where $lever is null or lever = $lever order by switched_at desc, flip_id limit $limit_rows"
    return store.frame(f"select * from after_checks {where}", {"lever": lever, "limit_rows": limit_rows})


def newest(store: Store) -> dict[tuple[str, str], str]:
    """What the newest check of each policy and segment says."""
    rows = store.rows("select policy, segment, arg_max(said, switched_at) as said from after_checks group by all")
    return {(row["policy"], row["segment"]): row["said"] for row in rows}


def metric_of(policy: Policy, cause: str) -> str:
    """The metric by which a switch is checked: its trigger's, where that is compared with control and in cells, else the benefit's."""
    for trigger in policy.disable_when:
        found = block_sums.in_cells(effect_name(trigger.metric))
        if code_of(policy, trigger) == cause and not isinstance(trigger, PremiseLost) and found:
            return found
    return block_sums.in_cells(effect_name(policy.expected_benefit.metric)) or "e2e_s"


def _row(store: Store, policy: Policy, due: dict[str, Any]) -> dict[str, Any]:
    key, decided_at = (due["lever"], due["segment"]), due["decided_at"]
    used = usage.read(store, {key: due["recommended_at"]}, decided_at, decided_at)[key].at(decided_at)
    switched_at = (used.since if due["state_after"] == "off" else used.set_at) or decided_at
    metric = metric_of(policy, due["cause"])
    sums = block_sums.read(store, *key, [metric], switched_at - BLOCKS * BLOCK, decided_at + BLOCKS * BLOCK)
    told = check(sums, policy.lever, metric, switched_at, decided_at)
    gain, low, high = told.change or (None, None, None)
    values = (told.metric, told.before, told.control_before, told.after, gain, low, high, told.helped, told.said)
    named = (due["flip_id"], policy.name, *key, switched_at, *values, decided_at + BLOCKS * BLOCK)
    return dict(zip(_ROW, named, strict=True))


def _said(
    lever: str,
    metric: str,
    levels: tuple[float | None, float | None, float | None],
    found: Change | None,
    helped: bool | None,
    against: Change | None,
) -> str:
    before, control, after = (None if level is None else wording.value(level, by_name()[metric].unit) for level in levels)
    if after is None or before is None or found is None:
        missing = "after" if after is None else "before"
        return f"after {lever} was switched: {wording.label(metric)} not measured in the hour {missing} it"
    verdict = {True: "it helped", False: "it did not help", None: "that does not tell whether it helped"}[helped]
    parts = [f"after {lever} was switched: {wording.label(metric)} {after} against {before} treated before, {_gain(found)}: {verdict}"]
    if control is not None:
        parts.append(f"control had {control}")
    if against is not None and against.high is not None and against.high < 0:
        parts.append(f"that is worse than control was ({_gain(against)})" + (f": {PEER}" if lever == "speculation" else ""))
    return "; ".join([*parts, "before and after differ in more than the lever"])


def _gain(one: Change) -> str:
    ends = "" if one.low is None or one.high is None else f" ({wording.percent(one.low)}..{wording.percent(one.high)} %)"
    return f"gain {wording.percent(one.gain)} %{ends}"


def _level(blocks: Sequence[Sum]) -> float | None:
    den = sum(one.den for one in blocks)
    return sum(one.num for one in blocks) / den if den else None


def _relative_variance(blocks: Sequence[Sum]) -> float:
    """The variance of the level of all blocks, over its square, as their levels differ."""
    level, mean = _level(blocks), sum(one.den for one in blocks) / max(1, len(blocks))
    if not level or len(blocks) < LEAST_BLOCKS:
        return math.inf
    rest = sum(((one.num - level * one.den) / mean) ** 2 for one in blocks)
    return rest / (len(blocks) * (len(blocks) - 1)) / level**2
