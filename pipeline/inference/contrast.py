"""Sums of two arms of the same block in, one number per stream out: how much worse treated did than the null allows.

A request's value is taken as R + (a - R * d) / dbar, with R and dbar of earlier blocks, so that a block's mean is first-order unbiased for
the ratio of sums (the linearized ratio of the delta method; docs/statistics.md). The treated arm is linearized around theta0 * R, the
ratio that the null gives it: then blocks with longer requests than usual do not lean to a side. A mean or a share has d = 1, and is itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

LEAST_REQUESTS = 5  # per arm, else the block says nothing
MEMORY_BLOCKS = 12.0  # after so many blocks a reference counts half

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sums:
    """One arm's sums of one block, an array (streams,) each: of requests, a, d, a^2, d^2 and a * d."""

    n: Reals
    num: Reals
    den: Reals
    num_sq: Reals
    den_sq: Reals
    num_den: Reals

    def charged(self, each: Reals) -> Sums:
        """The sums after `each` is added to a of every request, such as the TTFT that the lever added."""
        return Sums(
            self.n,
            self.num + self.n * each,
            self.den,
            self.num_sq + 2 * each * self.num + self.n * each * each,
            self.den_sq,
            self.num_den + each * self.den,
        )


@dataclass(frozen=True, slots=True)
class Reference:
    """What earlier blocks say of each arm: fading sums of requests, a and d, an array (streams,) each. Zeros = nothing yet."""

    treated_n: Reals
    treated_num: Reals
    treated_den: Reals
    control_n: Reals
    control_num: Reals
    control_den: Reals

    @classmethod
    def start(cls, streams: int) -> Self:
        """References of streams that have seen no block."""
        return cls(*np.zeros((6, streams)))


@dataclass(frozen=True, slots=True)
class Contrast:
    """One block's contrast, an array (streams,) each; NaN = this block says nothing.

    difference: relative to `level`, positive where treated is worse than the null allows. ih: 1 / n of treated + theta0^2 / n of control.
    b: variance of one request's value relative to `level`^2. level: the arms' pooled mean, in the metric's unit. share: treated's requests.
    """

    difference: Reals
    ih: Reals
    b: Reals
    level: Reals
    share: Reals


def theta0(least_gain: float | Reals, sign: float | Reals) -> float | Reals:
    """The ratio treated / control at which the gain is `least_gain` (a ratio); sign: 1 where lower is better, -1 where higher is."""
    return 1.0 - sign * least_gain


def block(treated: Sums, control: Sums, reference: Reference, theta0: float | Reals = 1.0, sign: float | Reals = 1.0) -> Contrast:
    """The contrast sign * (mean of treated - theta0 * mean of control) / level of one block, per stream.

    `reference` is of earlier blocks; teach it this one with `learn` afterwards. sign: 1 where lower is better, -1 where higher is.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = reference.control_num / reference.control_den
        ratio_treated = reference.treated_num / reference.treated_den
        dbar_treated = reference.treated_den / reference.treated_n
        dbar_control = reference.control_den / reference.control_n
        mean_treated = _mean(treated, theta0 * ratio, dbar_treated)
        mean_control = _mean(control, ratio, dbar_control)
        total = treated.n + control.n
        level = (treated.n * mean_treated + control.n * mean_control) / total
        spread = np.where(
            treated.n >= control.n,
            _variance(treated, ratio_treated, dbar_treated),
            _variance(control, ratio, dbar_control),
        )
        difference = sign * (mean_treated - theta0 * mean_control) / level
        ih = 1 / treated.n + np.square(theta0) / control.n
        told = (treated.n >= LEAST_REQUESTS) & (control.n >= LEAST_REQUESTS) & (level > 0) & np.isfinite(difference)
        values = (difference, ih, np.maximum(spread, 0.0) / level**2, level, treated.n / total)
    return Contrast(*(np.where(told, value, np.nan) for value in values))


def learn(reference: Reference, treated: Sums, control: Sums, memory_blocks: float = MEMORY_BLOCKS) -> Reference:
    """The reference with this block added; a block counts half after `memory_blocks` more. An arm without requests is carried on."""
    fade = 0.5 ** (1.0 / memory_blocks)
    return Reference(
        *_faded((reference.treated_n, reference.treated_num, reference.treated_den), treated, fade),
        *_faded((reference.control_n, reference.control_num, reference.control_den), control, fade),
    )


def gain(difference: Reals, share: Reals, sign: float | Reals = 1.0) -> Reals:
    """The gain against control (a ratio, positive = better) of a contrast with theta0 = 1; `share` is treated's share of requests.

    A contrast is relative to both arms' mean, a gain to control's. Infinite where no positive value of control gives the contrast; NaN
    stays NaN.
    """
    rise = sign * difference
    left = 1.0 - share * rise
    with np.errstate(divide="ignore", invalid="ignore"):
        return -sign * np.where(left > 0, rise / left, np.where(np.isnan(left), np.nan, np.inf))


def _mean(arm: Sums, ratio: float | Reals, dbar: Reals) -> Reals:
    return ratio + (arm.num - ratio * arm.den) / (arm.n * dbar)


def _variance(arm: Sums, ratio: Reals, dbar: Reals) -> Reals:
    """Of one request's linearized value, in the metric's unit squared."""
    rest = arm.num - ratio * arm.den
    squares = arm.num_sq - 2 * ratio * arm.num_den + ratio * ratio * arm.den_sq
    return (squares / arm.n - (rest / arm.n) ** 2) / dbar**2


def _faded(kept: tuple[Reals, ...], arm: Sums, fade: float) -> Iterator[Reals]:
    for old, new in zip(kept, (arm.n, arm.num, arm.den), strict=True):
        yield np.where(arm.n > 0, old * fade + new, old)
