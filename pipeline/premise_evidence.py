"""Sums of treated arms in long blocks in, evidence per lever, segment, metric and threshold out: is a premise past it?

Policies name the thresholds. It says that a premise is lost, never that the lever does harm: there is no control arm in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.inference import detector, premise, scale, waiting
from pipeline.inference.contrast import LEAST_REQUESTS, Contrast, Reference, Sums
from pipeline.inference.multiplicity import bonferroni_threshold
from pipeline.inference.waiting import Waiting
from pipeline.measure import BLOCK_S
from pipeline.metrics import by_name

SUMS = ("n", "num", "den", "num_sq", "den_sq", "num_den")
LONG_S = BLOCK_S * premise.BLOCKS_TOGETHER
BLOCKS_A_CYCLE = 86_400 // LONG_S
ALPHA = 0.05
BEYOND = 2.0  # as in `evidence`: how far past the threshold the logarithm of evidence grows
LAYOUT = 1
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
KEY = ("lever", "segment", "metric", "threshold", "is_above")
_WIDTHS = (3, waiting.width(premise.LAGS), len(detector.LAM))
_EVIDENCE = pl.List(pl.Struct({"threshold": pl.Float64(), "is_above": pl.Boolean(), "log_m": pl.Float64()}))

Reals = npt.NDArray[np.float64]
Key = tuple[str, str, str, float, bool]


@dataclass(frozen=True, slots=True)
class Watched:
    """A premise that a policy names: lost where `metric` lies above, or below, `threshold` (in the metric's unit, above 0)."""

    lever: str
    metric: str
    threshold: float
    is_above: bool


@dataclass(frozen=True, slots=True)
class Premises:
    """What is kept of each premise in the order of `keys`; `ended_at` is the end of its newest long block."""

    keys: tuple[Key, ...]
    ended_at: tuple[datetime, ...]
    reference: Reference
    scale: Waiting
    log_m: Reals

    @classmethod
    def start(cls, keys: Iterable[Key] = ()) -> Premises:
        """Premises that have seen no block."""
        named = tuple(keys)
        count = len(named)
        never = tuple(NEVER for _ in named)
        return cls(named, never, Reference.start(count), Waiting.start(count, premise.LAGS), detector.start(count))

    def numbers(self) -> Reals:
        """All that is kept as one row of numbers a premise, in an order that `LAYOUT` names."""
        kept = self.reference
        own = np.stack([kept.treated_n, kept.treated_num, kept.treated_den], axis=1)
        return np.concatenate([own, self.scale.numbers(), self.log_m], axis=1)

    @classmethod
    def of_numbers(cls, keys: Sequence[Key], ended_at: Sequence[datetime], numbers: Reals) -> Premises:
        """What `numbers` gave, back."""
        own, scaled, log_m = np.split(numbers, np.cumsum(_WIDTHS)[:-1], axis=1)
        reference = replace(
            Reference.start(len(keys)), treated_n=own[:, 0].copy(), treated_num=own[:, 1].copy(), treated_den=own[:, 2].copy()
        )
        return cls(tuple(keys), tuple(ended_at), reference, Waiting.of_numbers(scaled), log_m)


def advanced(premises: Premises, sums: pl.DataFrame, watched: Iterable[Watched], ended_at: datetime) -> Premises:
    """The premises after one more long block; one that has seen a later block is left as it is.

    `sums` are treated's of that block: lever, segment, metric and SUMS. Of a metric that `is_spread` num / den is its value.
    """
    premises = _with_keys(premises, sums, watched)
    if not premises.keys:
        return premises
    fresh = np.array([before < ended_at for before in premises.ended_at], np.bool_)
    arm, here = _arm(premises.keys, sums, fresh)
    thresholds = np.array([key[3] for key in premises.keys])
    lost = np.array([premise.ABOVE if key[4] else premise.BELOW for key in premises.keys])
    told = _told(premises, arm, thresholds, lost)
    log_m = np.minimum(
        detector.step(premises.log_m, told.difference / scale.sd(premises.scale.known, told.ih)), _most(premises.keys)[:, None]
    )
    doubtful = detector.freezes(log_m, detector.threshold(BLOCKS_A_CYCLE, ALPHA))
    return Premises(
        premises.keys,
        tuple(ended_at if took else before for took, before in zip(here, premises.ended_at, strict=True)),
        premise.learn(premises.reference, arm),
        waiting.update(premises.scale, told.difference, told.ih, told.b, doubtful, scale.HALF_LIFE_S / LONG_S),
        log_m,
    )


def is_spread(metric: str) -> bool:
    """Whether a metric is how uneven replicas are: one number a block, which no request has a part of."""
    return by_name()[metric].kind == "spread"


def listed(premises: Premises) -> pl.DataFrame:
    """One row per premise: KEY, `ended_at` and `log_m`, the logarithm of M; -inf while its scale is not known."""
    schema = {"lever": pl.String(), "segment": pl.String(), "metric": pl.String(), "threshold": pl.Float64(), "is_above": pl.Boolean()}
    keys = pl.DataFrame(premises.keys, schema=schema, orient="row")
    ended_at = pl.Series("ended_at", premises.ended_at, pl.Datetime("us", "UTC"))
    return keys.with_columns(ended_at, pl.Series("log_m", detector.log_e(premises.log_m)))


def with_evidence(effects: pl.DataFrame, listed: pl.DataFrame) -> pl.DataFrame:
    """The effects, premises with `premise_evidence` and with `tests`: how many segments of the lever are told apart."""
    known = listed.with_columns(pl.col("segment").n_unique().over("lever").alias("of_lever")).filter(pl.col("log_m").is_finite())
    entry = pl.struct("threshold", "is_above", "log_m").alias("premise_evidence")
    told = known.sort("threshold", "is_above").group_by("lever", "segment", "metric").agg(entry, pl.col("of_lever").first())
    joined = effects.with_columns(pl.lit(None, pl.Int64).alias("tests")) if "tests" not in effects.columns else effects
    joined = joined.join(told, on=["lever", "segment", "metric"], how="left", maintain_order="left")
    is_premise = pl.col("basis") == premise.BASIS
    tests = pl.when(is_premise).then(pl.coalesce("of_lever", "tests")).otherwise("tests").alias("tests")
    return joined.with_columns(tests, pl.when(is_premise).then("premise_evidence").cast(_EVIDENCE).alias("premise_evidence")).drop(
        "of_lever"
    )


def _told(premises: Premises, arm: Sums, thresholds: Reals, lost: Reals) -> Contrast:
    """How far each premise's block lies past its threshold, relative to it."""
    of_sums = premise.block(arm, premises.reference, thresholds, lost)
    spread = np.array([is_spread(key[2]) for key in premises.keys], np.bool_)
    if not spread.any():
        return of_sums
    known = spread & (arm.n >= LEAST_REQUESTS) & (arm.den > 0)
    value = np.divide(arm.num, arm.den, out=np.full(len(arm.n), np.nan), where=known)
    of_levels = premise.level(value / thresholds, 1.0, lost)
    parts = ((getattr(of_levels, name), getattr(of_sums, name)) for name in ("difference", "ih", "b", "level", "share"))
    return Contrast(*(np.where(spread, level, plain) for level, plain in parts))


def _with_keys(premises: Premises, sums: pl.DataFrame, watched: Iterable[Watched]) -> Premises:
    by_metric: dict[tuple[str, str], list[Watched]] = {}
    for one in watched:
        by_metric.setdefault((one.lever, one.metric), []).append(one)
    seen = sums.select("lever", "segment", "metric").unique().iter_rows()
    wanted = {
        (lever, segment, metric, one.threshold, one.is_above)
        for lever, segment, metric in seen
        for one in by_metric.get((lever, metric), ())
    }
    new = Premises.start(sorted(wanted - set(premises.keys)))
    if not new.keys:
        return premises
    numbers = np.concatenate([premises.numbers(), new.numbers()])
    return Premises.of_numbers(premises.keys + new.keys, premises.ended_at + new.ended_at, numbers)


def _arm(keys: Sequence[Key], sums: pl.DataFrame, fresh: npt.NDArray[np.bool_]) -> tuple[Sums, npt.NDArray[np.bool_]]:
    """(treated's sums of each premise, zeros where there are none; where there are)."""
    names = pl.DataFrame([key[:3] for key in keys], schema=["lever", "segment", "metric"], orient="row")
    placed = names.join(sums, on=["lever", "segment", "metric"], how="left", maintain_order="left")
    here = placed["n"].fill_null(0).to_numpy().astype(np.float64) > 0
    taken = here & fresh
    parts = (placed[name].cast(pl.Float64).fill_null(0.0).to_numpy() for name in SUMS)
    return Sums(*(np.where(taken, part, 0.0) for part in parts)), taken


def _most(keys: Sequence[Key]) -> Reals:
    """The logarithm at which each stream's evidence stops growing: a little past where it may act beside its lever's other segments."""
    segments: dict[str, set[str]] = {}
    for key in keys:
        segments.setdefault(key[0], set()).add(key[1])
    told = {lever: np.log(bonferroni_threshold(len(names), BLOCKS_A_CYCLE, ALPHA)) + BEYOND for lever, names in segments.items()}
    return np.array([told[key[0]] for key in keys])
