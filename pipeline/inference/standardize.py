"""Contrasts of strata in, one contrast of all the traffic out, with weights fixed in advance: a shift of the mix is no effect.

Strata are of what is known before a request is treated: input length, model, hardware. Where a stratum has too few requests the finest key
is dropped, for that block; a block whose covered weight stays below 90 % says nothing (docs/tails.md). The scale of the total comes
from its own series, as any stream's does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from pipeline.inference import contrast
from pipeline.inference.contrast import Reference, Sums

LEAST_COVERAGE = 0.9
LEAST_CONTROL = 20.0  # requests of a stratum's control in a block
LEAST_TREATED = 20.0
SAME_RATIO = 0.01  # pooled and standardized effects that differ by no more agree

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Total:
    """One block's contrast of all traffic: NaN where it says nothing. coverage: the weight of the strata that had data, ratio 0..1.

    ih, b and share are what a scale and a gain need, as of one stream (see `contrast.Contrast`).
    """

    difference: float
    ih: float
    b: float
    share: float
    coverage: float


@dataclass(frozen=True, slots=True)
class Mix:
    """The three readings of one effect (gains, ratio): of pooled sums, of each stratum, and standardized; and whether the mix misleads.

    `is_misleading` says that pooled differs by more than 1 % from standardized, and from what it were if both arms had the same mix, and
    lies outside what any stratum shows or on the other side of 0 (Simpson).
    """

    pooled: float
    strata: Reals
    standardized: float
    coverage: float
    is_misleading: bool


def weights(requests: Reals) -> Reals:
    """Each stratum's share of the requests of both arms in the last complete cycle, (strata,). All 0 where there were none."""
    total = float(requests.sum())
    return requests / total if total > 0 else np.zeros_like(requests)


def collapse(sums: Reals, groups: Whole, count: int) -> Reals:
    """The sums (strata, ...) of each of `count` parents; `groups` names the parent of each stratum, from 0 on."""
    out = np.zeros((count, *sums.shape[1:]))
    np.add.at(out, groups, sums)
    return out


def total(
    treated: Sums, control: Sums, reference: Reference, weight: Reals, parents: Sequence[Whole], theta0: float = 1.0, sign: float = 1.0
) -> tuple[Total, int]:
    """One block's standardized contrast from the sums (strata,) of both arms, and the level that it was made at (see `level`).

    The reference is of the strata as given; parents' are sums of it.
    """
    number = level(treated.n, control.n, weight, parents)
    groups = parents[number - 1] if number > 0 else np.arange(len(weight))
    count = int(groups.max(initial=-1)) + 1
    mine, theirs = (Sums(*(collapse(getattr(arm, one.name), groups, count) for one in fields(Sums))) for arm in (treated, control))
    earlier = Reference(*(collapse(getattr(reference, one.name), groups, count) for one in fields(Reference)))
    told = contrast.block(mine, theirs, earlier, theta0, sign)
    return standardized(told.difference, mine.n, theirs.n, told.b, collapse(weight, groups, count), theta0), number


def level(treated_n: Reals, control_n: Reals, weight: Reals, parents: Sequence[Whole]) -> int:
    """The finest level whose strata with enough requests in both arms have 90 % of the weight; -1 where none has.

    `parents` maps each of the given strata to its group at level 1, 2, ...: one key less at each. Counts decide, never values.
    """
    for number, groups in enumerate([np.arange(len(weight)), *parents]):
        count = int(groups.max(initial=-1)) + 1
        mine, theirs, share = (collapse(values, groups, count) for values in (treated_n, control_n, weight))
        if share[_covered(mine, theirs)].sum() >= LEAST_COVERAGE:
            return number
    return -1


def standardized(difference: Reals, treated_n: Reals, control_n: Reals, b: Reals, weight: Reals, theta0: float = 1.0) -> Total:
    """The weighted contrast of one block over the strata that have data, the weights renormalized (docs/tails.md).

    `difference` and `b` are relative, as a contrast gives them, (strata,); NaN = none. b * ih is the sum's variance by requests alone.
    """
    told = np.isfinite(difference) & _covered(treated_n, control_n)
    coverage = float(weight[told].sum())
    if coverage < LEAST_COVERAGE:
        return Total(np.nan, np.nan, np.nan, np.nan, coverage)
    share = weight[told] / coverage
    inverse = 1 / treated_n[told] + theta0**2 / control_n[told]
    noise = share**2 * inverse
    ih, variance = float(noise.sum()), float((noise * b[told]).sum())
    requests = treated_n[told] / (treated_n[told] + control_n[told])
    return Total(float((share * difference[told]).sum()), ih, variance / ih, float((share * requests).sum()), coverage)


def mix(treated: Reals, control: Reals, weight: Reals, sign: float = 1.0) -> Mix:
    """Pooled, per-stratum and standardized gains together, over any time. Arms are (strata, 2): num and den of a ratio of sums.

    sign: 1 where lower is better, -1 where higher is. Strata that lack an arm are NaN and leave the standardized gain.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        gains = sign * (1 - (treated[:, 0] / treated[:, 1]) / (control[:, 0] / control[:, 1]))
        whole = sign * (1 - (treated[:, 0].sum() / treated[:, 1].sum()) / (control[:, 0].sum() / control[:, 1].sum()))
    told = np.isfinite(gains) & (weight > 0)
    gains = np.where(np.isfinite(gains), gains, np.nan)
    coverage = float(weight[told].sum())
    if coverage < LEAST_COVERAGE:
        return Mix(float(whole), gains, float("nan"), coverage, False)
    overall = float((weight[told] * gains[told]).sum() / coverage)
    outside = not gains[told].min() <= whole <= gains[told].max()
    expected = treated[told, 1] * control[told, 0] / control[told, 1]  # of control, had it treated's mix
    alike = sign * (1 - treated[told, 0].sum() / expected.sum())
    misleads = min(abs(whole - overall), abs(whole - alike)) > SAME_RATIO and (outside or whole * overall < 0)
    return Mix(float(whole), gains, overall, coverage, bool(misleads))


def _covered(treated_n: Reals, control_n: Reals) -> npt.NDArray[np.bool_]:
    return np.asarray((treated_n >= LEAST_TREATED) & (control_n >= LEAST_CONTROL))
