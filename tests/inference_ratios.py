"""Seeds in, simulated days of speculative decoding out: what draft acceptance, a ratio of sums, adds up to a minute and arm.

What is talked about drifts, and with it how much of a draft is accepted; a request with worse drafts takes more steps. The arms are alike.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from inference_days import MINUTES

DRAFTED_A_STEP = 4
ARRIVALS_A_MINUTE = (380.0, 20.0)  # treated, control

Reals = npt.NDArray[np.float64]


def acceptance_days(seeds: Iterable[int], worse: float = 0.0, from_minute: int = 0) -> Reals:
    """One day per seed: (days, minutes, arms, sums of n, a, d, a^2, d^2, a d); `worse` is a ratio."""
    return np.stack([_day(np.random.default_rng(seed), worse, from_minute) for seed in seeds])


def _day(rng: np.random.Generator, worse: float, from_minute: int) -> Reals:
    load = 1 + 0.6 * np.sin(2 * np.pi * np.arange(MINUTES) / MINUTES)
    topic = np.zeros(MINUTES)
    for minute in range(1, MINUTES):
        topic[minute] = 0.9 * topic[minute - 1] + 0.2 * rng.normal()
    factor = np.where(np.arange(MINUTES) < from_minute, 1.0, 1.0 - worse)
    arms = [_arm(rng, rate * load, topic, scale) for rate, scale in zip(ARRIVALS_A_MINUTE, (factor, np.ones(MINUTES)), strict=True)]
    return np.stack(arms, axis=1)


def _arm(rng: np.random.Generator, rate: Reals, topic: Reals, factor: Reals) -> Reals:
    minute = np.repeat(np.arange(MINUTES), rng.poisson(rate))
    chance = factor[minute] / (1 + np.exp(0.35 - topic[minute] - 0.6 * rng.standard_normal(minute.size)))
    tokens = np.exp(5 + 0.8 * rng.standard_normal(minute.size))
    steps = np.ceil(tokens / (1 + DRAFTED_A_STEP * chance))
    drafted = DRAFTED_A_STEP * steps
    accepted = rng.binomial(drafted.astype(np.int64), chance).astype(np.float64)
    parts = (np.ones(minute.size), accepted, drafted, accepted**2, drafted**2, accepted * drafted)
    return np.stack([np.bincount(minute, weights=part, minlength=MINUTES) for part in parts], axis=-1)
