"""A scenario and seeds in, simulated days of inter-token latencies out, whose truth is known: what each arm's requests sum up to a minute.

ln ITL = ln mu(load) + G + H + A + eps + stall: G is common to the fleet, H a replica's own minute, A a replica's own offset, eps and the
stall a request's. Load swings by 60 % over the day. Effects are multiplied into treated afterwards, so one set of days serves every size.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

MINUTES = 1440
REPLICAS = 40
TREATED, CONTROL = 0, 1
FIELDS = ("n", "s1", "s2", "minutes", "m1", "m2")  # requests, their sum and squares; replica-minutes, sum and squares of their means

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is true of a fleet. Rates are requests per replica-minute, spreads are of logarithms."""

    rate_per_min: float = 10.0
    controls: int = 2
    rotation_min: int | None = None  # None = the same replicas all day
    replica_sd: float = 0.0
    minute_sd: float = 0.05
    minute_memory: float = 0.7
    request_sd: float = 0.35
    stall_share: float = 0.015
    noise_by_load: float = 0.0  # the noise of requests and minutes grows with load by this power
    replicas: int = REPLICAS


SCENARIOS = {
    "N1 base": Scenario(),
    "N2 rotating": Scenario(rotation_min=30, replica_sd=0.02),
    "N3 heavy tail": Scenario(stall_share=0.05, request_sd=0.5),
    "N4 one control, 4 req/min": Scenario(rate_per_min=4.0, controls=1),
    "N5 10 % control": Scenario(controls=4),
    "N6 noise by load": Scenario(noise_by_load=1.0),
    "N7 slow replicas": Scenario(minute_sd=0.08, minute_memory=0.95),
    "N8 fixed control": Scenario(replica_sd=0.02),
}


def days(scenario: Scenario, seeds: Iterable[int]) -> Reals:
    """One day per seed: (days, minutes, arms, FIELDS), without any effect."""
    return np.stack([_day(scenario, np.random.default_rng(seed)) for seed in seeds])


def on_end(sums: Reals, together: int) -> Reals:
    """The same days, so many of them after each other in a row: (days / together, together * MINUTES, arms, FIELDS)."""
    return sums.reshape(len(sums) // together, together * MINUTES, *sums.shape[2:])


def harmed(sums: Reals, relative: float, from_minute: int = 0, to_minute: int | None = None) -> Reals:
    """The same days with treated `relative` slower (a ratio) during these minutes."""
    changed = sums.copy()
    factor = np.array([1.0, 1 + relative, (1 + relative) ** 2, 1.0, 1 + relative, (1 + relative) ** 2])
    changed[:, from_minute:to_minute, TREATED] *= factor
    return changed


def _day(scenario: Scenario, rng: np.random.Generator) -> Reals:
    load = 1 + 0.6 * np.sin(2 * np.pi * np.arange(MINUTES) / MINUTES)
    counts = rng.poisson(scenario.rate_per_min * load[:, None], (MINUTES, scenario.replicas)).ravel()
    wider = load**scenario.noise_by_load
    level = np.log(0.025) + 0.2 * (load - 1) + _wandering(rng, 0.98, 0.10, 1)[:, 0]
    own = wider[:, None] * _wandering(rng, scenario.minute_memory, scenario.minute_sd, scenario.replicas)
    offset = rng.normal(0, scenario.replica_sd, scenario.replicas) if scenario.replica_sd else np.zeros(scenario.replicas)
    cell = np.repeat(np.arange(counts.size), counts)
    noise = scenario.request_sd * np.repeat(wider, scenario.replicas)[cell] * rng.standard_normal(cell.size)
    stalled = rng.random(cell.size) < scenario.stall_share
    noise[stalled] += rng.normal(np.log(3), 0.4, int(stalled.sum()))
    value = np.exp((level[:, None] + own + offset).ravel()[cell] + noise)
    return _by_arm(counts, _summed(cell, value, counts.size), _summed(cell, value * value, counts.size), _controls(scenario))


def _wandering(rng: np.random.Generator, memory: float, sd: float, width: int) -> Reals:
    """An autoregression with this standard deviation from its first minute on: (minutes, width)."""
    steps = sd * np.sqrt(1 - memory**2) * rng.standard_normal((MINUTES, width))
    steps[0] /= np.sqrt(1 - memory**2)
    return np.asarray(lfilter([1.0], [1.0, -memory], steps, axis=0))


def _summed(cell: npt.NDArray[np.int64], value: Reals, size: int) -> Reals:
    return np.asarray(np.bincount(cell, weights=value, minlength=size))


def _controls(scenario: Scenario) -> npt.NDArray[np.bool_]:
    """Which replica is control in which minute: (minutes, replicas)."""
    turn = np.arange(MINUTES) // (scenario.rotation_min or MINUTES)
    first = turn * scenario.controls % scenario.replicas
    return ((np.arange(scenario.replicas) - first[:, None]) % scenario.replicas) < scenario.controls


def _by_arm(counts: npt.NDArray[np.int64], s1: Reals, s2: Reals, control: npt.NDArray[np.bool_]) -> Reals:
    means = np.divide(s1, counts, out=np.zeros_like(s1), where=counts > 0)
    fields = np.stack([counts, s1, s2, counts > 0, means, means**2], axis=-1).reshape(*control.shape, len(FIELDS))
    return np.stack([np.einsum("mrf,mr->mf", fields, ~control), np.einsum("mrf,mr->mf", fields, control)], axis=1)
