"""Simulated days in, when each method would have alarmed out: ours, and the naive tests that people use instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from inference_days import CONTROL, MINUTES, TREATED

from pipeline.inference import contrast, detector, interval, scale, waiting
from pipeline.inference.contrast import Contrast, Reference, Sums
from pipeline.inference.detector import Tails
from pipeline.inference.waiting import Waiting

Reals = npt.NDArray[np.float64]
NEVER = np.inf


@dataclass(frozen=True, slots=True)
class Alarms:
    """The minute at whose end each day first alarmed, an array (days,) each; inf = never."""

    harm: Reals
    benefit: Reals

    def at_all(self) -> tuple[float, float]:
        """The share of days with an alarm: of harm, of benefit."""
        return float(np.mean(np.isfinite(self.harm))), float(np.mean(np.isfinite(self.benefit)))


def delays(alarmed: Reals, changed_at: int) -> Reals:
    """Minutes from the change to the alarm, of days that had not alarmed before it; inf = never."""
    return alarmed[alarmed > changed_at] - changed_at


def latency(fields: Reals) -> Sums:
    """An arm's sums of a mean, from the fields of `inference_days`."""
    n, s1, s2 = fields[:, 0], fields[:, 1], fields[:, 2]
    return Sums(n, s1, n, s2, n, s1)


def acceptance(fields: Reals) -> Sums:
    """An arm's sums of a ratio, from the fields of `inference_ratios`."""
    return Sums(*fields.T)


@dataclass(frozen=True, slots=True)
class Metric:
    """How days are read: which sums, and 1 where lower is better, -1 where higher is."""

    sums: Callable[[Reals], Sums] = latency
    sign: float = 1.0


LATENCY = Metric()
ACCEPTANCE = Metric(acceptance, -1.0)


def blocks(days: Reals, block_min: int, theta0: float = 1.0, metric: Metric = LATENCY) -> Iterator[Contrast]:
    """The contrast of each block, every day being a stream."""
    count = days.shape[1] // block_min
    summed = days[:, : count * block_min].reshape(len(days), count, block_min, *days.shape[2:]).sum(axis=2)
    reference = Reference.start(len(days))
    for number in range(count):
        treated, control = (metric.sums(summed[:, number, arm]) for arm in (TREATED, CONTROL))
        yield contrast.block(treated, control, reference, theta0, metric.sign)
        reference = contrast.learn(reference, treated, control)


def watch(
    days: Reals,
    block_min: int,
    *,
    phi: float = scale.PHI,
    tails: Tails = "gaussian",
    alpha: float = 0.05,
    theta0: float = 1.0,
    lags: int | None = None,
    metric: Metric = LATENCY,
) -> Alarms:
    """The detector with its scale, as it runs in service; a day is one cycle, however many follow each other in a row of `days`."""
    streams = len(days)
    limit = detector.threshold(MINUTES // block_min, alpha)
    state = Waiting.start(streams, lags or scale.lags(60.0 * block_min))
    harm, benefit = detector.start(streams), detector.start(streams)
    first = np.full((2, streams), NEVER)
    for number, block in enumerate(blocks(days, block_min, theta0, metric), start=1):
        z = block.difference / scale.sd(state.known, block.ih, phi)
        harm, benefit = detector.step(harm, z, tails), detector.step(benefit, -z, tails)
        half_life = scale.HALF_LIFE_S / (60 * block_min)
        state = waiting.update(state, block.difference, block.ih, block.b, detector.freezes(harm, limit), half_life)
        for row, log_m in enumerate((harm, benefit)):
            first[row] = np.where(detector.alarms(log_m, limit), np.minimum(first[row], number * block_min), first[row])
    return Alarms(*first)


def since_start(days: Reals, block_min: int, *, asymptotic: bool, alpha: float = 0.05, long_run: bool = False) -> Alarms:
    """An anytime-valid interval over all blocks since the first minute, in alarm while it lies on one side of 0."""
    streams = len(days)
    running, state = interval.Running.start(streams), scale.State.start(streams, scale.lags(60.0 * block_min))
    first = np.full((2, streams), NEVER)
    for number, block in enumerate(blocks(days, block_min), start=1):
        running = running.add(block.difference)
        state = scale.update(state, block.difference, block.ih, block.b)
        kappa = np.nan_to_num(scale.inflation(state), nan=1.0) if long_run else 1.0
        radius = (
            interval.asymptotic_radius(running.n, running.variance(), alpha, kappa=kappa)
            if asymptotic
            else interval.avt_radius(running.n, running.variance(), alpha, kappa=kappa)
        )
        for row, sign in enumerate((1.0, -1.0)):
            first[row] = np.where(sign * running.mean() > radius, np.minimum(first[row], number * block_min), first[row])
    return Alarms(*first)
