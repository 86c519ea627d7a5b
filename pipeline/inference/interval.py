"""Running sums of block contrasts in, intervals out that hold at every moment at once, with probability 1 - alpha.

`avt` is the one shown to people; `asymptotic_radius` needs 20 blocks; `Bounded` is for few blocks of values between 0 and 1
(docs/statistics.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

LEAST_BLOCKS = 3
LEAST_BLOCKS_ASYMPTOTIC = 20
PHI = 8.0  # an eighth of the number of blocks at which the interval is tightest

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Running:
    """What is kept per stream: how many contrasts there were, their sum, and the sum of their squares, an array (streams,) each."""

    n: Reals
    s: Reals
    ss: Reals

    @classmethod
    def start(cls, streams: int) -> Self:
        """Sums of streams that have seen no block."""
        return cls(*np.zeros((3, streams)))

    def add(self, difference: Reals) -> Running:
        """The sums with one more block; NaN leaves a stream as it was."""
        told = np.isfinite(difference)
        value = np.where(told, difference, 0.0)
        return Running(self.n + told, self.s + value, self.ss + value * value)

    def mean(self) -> Reals:
        """Per stream; NaN before the first contrast."""
        return np.divide(self.s, self.n, out=np.full_like(self.s, np.nan), where=self.n > 0)

    def variance(self) -> Reals:
        """The sample variance per stream; NaN before the second contrast."""
        mean = self.mean()
        rest = np.maximum(self.ss - self.n * mean * mean, 0.0)
        return np.divide(rest, self.n - 1, out=np.full_like(rest, np.nan), where=self.n > 1)


def avt(n: Reals, mean: Reals, variance: Reals, alpha: float | Reals, phi: float = PHI, kappa: float | Reals = 1.0) -> tuple[Reals, Reals]:
    """The anytime-valid t interval (low, high) of the mean contrast, per stream; infinite below 3 blocks.

    Wang and Ramdas 2310.03722, Lindon et al. 2210.08589. kappa: `scale.inflation`, where neighboring blocks are alike.
    """
    radius = avt_radius(n, variance, alpha, phi, kappa)
    center = np.where(np.isfinite(radius), mean, 0.0)
    return center - radius, center + radius


def avt_radius(n: Reals, variance: Reals, alpha: float | Reals, phi: float = PHI, kappa: float | Reals = 1.0) -> Reals:
    """Half the width of `avt`."""
    nu, r = np.maximum(n - 1, 1), phi / (phi + n)
    a = np.exp(2 / (nu + 1) * (np.log(1 / np.asarray(alpha)) - 0.5 * np.log(r)))
    left = 1 - a * r
    known = (n >= LEAST_BLOCKS) & (left > 0) & np.isfinite(variance)
    squared = nu * (a - 1) / np.where(known, left, 1.0) * np.where(known, kappa * variance, 0.0) / np.maximum(n, 1)
    return np.where(known, np.sqrt(squared), np.inf)


def avt_log_e(n: Reals, mean: Reals, variance: Reals, theta: float | Reals = 0.0, phi: float = PHI, kappa: float | Reals = 1.0) -> Reals:
    """The logarithm of the evidence against a mean of `theta`: `theta` is outside `avt` where it is above ln(1 / alpha). 0 = none yet."""
    nu, r = np.maximum(n - 1, 1), phi / (phi + n)
    with np.errstate(divide="ignore", invalid="ignore"):
        t_squared = n * (mean - theta) ** 2 / (kappa * variance)
        evidence = 0.5 * np.log(r) - (nu + 1) / 2 * np.log((1 + r * t_squared / nu) / (1 + t_squared / nu))
    return np.where((n >= LEAST_BLOCKS) & np.isfinite(evidence), evidence, 0.0)


def asymptotic_radius(n: Reals, variance: Reals, alpha: float, tightest_at_blocks: float = 64.0, kappa: float | Reals = 1.0) -> Reals:
    """Half the width of the asymptotic confidence sequence, per stream; infinite below 20 blocks, where it would not hold.

    Waudby-Smith et al. 2103.06476, theorem 2.2.
    """
    rho_squared = (2 * np.log(1 / alpha) + np.log(1 + 2 * np.log(1 / alpha))) / tightest_at_blocks
    spread = n * rho_squared + 1
    count = np.maximum(n, 1)
    squared = 2 * spread / (count**2 * rho_squared) * np.log(np.sqrt(spread) / alpha)
    known = (n >= LEAST_BLOCKS_ASYMPTOTIC) & np.isfinite(variance)
    return np.where(known, np.sqrt(squared * np.where(known, kappa * variance, 0.0)), np.inf)


def one_sided_log_e(s: Reals, intrinsic_time: Reals, rho: float) -> Reals:
    """The logarithm of the evidence that a sum `s` with variance `intrinsic_time` has a mean above 0 (Howard et al. 1810.08240, prop. 5).

    rho: the variance at which it is sharpest, about the intrinsic time of interest over 8.
    """
    total = intrinsic_time + rho
    return np.asarray(0.5 * np.log(4 * rho / total) + s**2 / (2 * total) + log_ndtr(s / np.sqrt(total)))


@dataclass(frozen=True, slots=True)
class Bounded:
    """What the empirical-Bernstein interval keeps per stream of values between 0 and 1, an array (streams,) each.

    Waudby-Smith and Ramdas, predictable plug-in. n, total, spread: count, sum, and squares about the mean of before.
    bets, won, cost: sums of lambda, of lambda times the value, and of what the interval's width is made of.
    """

    n: Reals
    total: Reals
    spread: Reals
    bets: Reals
    won: Reals
    cost: Reals

    @classmethod
    def start(cls, streams: int) -> Self:
        """Sums of streams that have seen no block."""
        return cls(*np.zeros((6, streams)))

    def add(self, value: Reals, alpha: float) -> Bounded:
        """The sums with one more block's value; NaN leaves a stream as it was. Take the same `alpha` at each block.

        Raises: ValueError for a value outside 0..1.
        """
        told = np.isfinite(value)
        x = np.where(told, value, 0.0)
        if ((x < 0) | (x > 1)).any():
            msg = f"empirical Bernstein: a block's value is {x[(x < 0) | (x > 1)][0]:g}; it takes values from 0 to 1"
            raise ValueError(msg)
        t = self.n + 1
        mean_before = (0.5 + self.total) / t
        variance_before = (0.25 + self.spread) / t
        bet = np.minimum(0.5, np.sqrt(2 * np.log(2 / alpha) / (variance_before * t * np.log(1 + t))))
        mean_now = (0.5 + self.total + x) / (t + 1)
        grown = (1.0, x, (x - mean_now) ** 2, bet, bet * x, (x - mean_before) ** 2 * (-np.log1p(-bet) - bet))
        kept = (self.n, self.total, self.spread, self.bets, self.won, self.cost)
        return Bounded(*(np.where(told, old + more, old) for old, more in zip(kept, grown, strict=True)))

    def interval(self, alpha: float) -> tuple[Reals, Reals]:
        """The interval (low, high) within 0..1, per stream; holds for any number of blocks."""
        some = self.bets > 0
        safe = np.where(some, self.bets, 1.0)
        radius = np.where(some, (np.log(2 / alpha) + self.cost) / safe, np.inf)
        center = np.where(some, self.won / safe, 0.5)
        return np.clip(center - radius, 0.0, 1.0), np.clip(center + radius, 0.0, 1.0)
