"""A scenario and seeds in, histograms of simulated days out, and when the test of a tail would have alarmed on them.

The days are those of `inference_days`, with every request's bin kept. A slower treated arm is its histogram some bins further up; stalls
take a share of each bin far up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from inference_days import CONTROL, MINUTES, REPLICAS, TREATED, Scenario, _controls, _wandering

from pipeline.inference import block_length, detector, exceedance, histogram, scale
from pipeline.inference.contrast import Contrast

BLOCK_MIN, BINS, FIRST = 5, 300, 40
BLOCKS = MINUTES // BLOCK_MIN
WINDOW_BLOCKS = 12

Reals = npt.NDArray[np.float64]
Counts = npt.NDArray[np.uint16]


def tail_days(scenario: Scenario, seeds: Iterable[int]) -> Counts:
    """One day per seed: counts (days, blocks of 5 minutes, arms, bins), without any effect."""
    return np.stack([_day(scenario, np.random.default_rng(seed)) for seed in seeds])


def slower(counts: Counts, bins: int, since_block: int) -> Counts:
    """The same days with treated some bins of 2 % slower from a block on."""
    changed = counts.copy()
    changed[:, since_block:, TREATED] = _up(counts[:, since_block:, TREATED], bins)
    return changed


def stalling(counts: Counts, share: float, since_block: int, seed: int = 0) -> Counts:
    """The same days with a share of treated's requests three times as slow from a block on."""
    changed, treated = counts.copy(), counts[:, since_block:, TREATED]
    stalled = np.random.default_rng(seed).binomial(treated, share).astype(np.uint16)
    changed[:, since_block:, TREATED] = treated - stalled + _up(stalled, round(np.log(3) / np.log(1.02)))
    return changed


@dataclass(frozen=True, slots=True)
class _Watched:
    """Base blocks gathered until control has enough requests."""

    open: block_length.Open
    earlier: tuple[Reals, ...]


def first_alarms(counts: Counts, share: float, sign: float = 1.0, phi: float = scale.PHI) -> Reals:
    """The minute at whose end each day first alarmed that more (sign -1: fewer) of treated's requests exceed; inf = never."""
    needed = block_length.control_needed(share)
    streams, limit = len(counts), detector.threshold(BLOCKS, 0.05)
    multiple = int(np.ceil(needed / block_length.LEAST_CONTROL))
    state, log_m = scale.State.start(streams, scale.lags(60.0 * BLOCK_MIN * multiple)), detector.start(streams)
    found = np.full(streams, np.inf)
    for number, told in enumerate(_contrasts(counts, share, needed), start=1):
        z = sign * told.difference / scale.sd(state, told.ih, phi)
        log_m = detector.step(log_m, z)
        state = scale.update(state, told.difference, told.ih, told.b, detector.freezes(log_m, limit))
        found = np.where(detector.alarms(log_m, limit), np.minimum(found, number * BLOCK_MIN), found)
    return found


def _contrasts(counts: Counts, share: float, needed: float) -> Iterator[Contrast]:
    """At the end of each 5 minutes, the contrast of the streams that close a block then."""
    watched = _Watched(block_length.Open.start(len(counts), 2 * BINS), ())
    for number in range(counts.shape[1]):
        now = counts[:, number].astype(np.float64)
        held, closed = block_length.add(watched.open, now.reshape(len(now), 2 * BINS), now[:, CONTROL].sum(axis=1), 1, needed)
        arms = np.nan_to_num(closed.sums).reshape(len(now), 2, BINS)
        earlier = np.sum(watched.earlier, axis=0) if watched.earlier else np.zeros((len(now), BINS))
        yield exceedance.block(arms[:, TREATED], arms[:, CONTROL], exceedance.threshold(earlier, share), share)
        kept = (*watched.earlier, now[:, CONTROL])[-WINDOW_BLOCKS:]
        watched = _Watched(held, kept)


def _day(scenario: Scenario, rng: np.random.Generator) -> Counts:
    load = 1 + 0.6 * np.sin(2 * np.pi * np.arange(MINUTES) / MINUTES)
    requests = rng.poisson(scenario.rate_per_min * load[:, None], (MINUTES, REPLICAS)).ravel()
    level = np.log(0.025 / 0.002) + 0.2 * (load - 1) + _wandering(rng, 0.98, 0.10, 1)[:, 0]
    own = _wandering(rng, scenario.minute_memory, scenario.minute_sd, REPLICAS) + rng.normal(0, scenario.replica_sd, REPLICAS)
    cell = np.repeat(np.arange(requests.size), requests)
    logs = (level[:, None] + own).ravel()[cell] + scenario.request_sd * rng.standard_normal(cell.size)
    stalled = rng.random(cell.size) < scenario.stall_share
    logs[stalled] += rng.normal(np.log(3), 0.4, int(stalled.sum()))
    arm = np.where(_controls(scenario).ravel(), CONTROL, TREATED)[cell]
    place = cell // (REPLICAS * BLOCK_MIN) * 2 + arm
    numbers = np.floor(logs / np.log(1.02)).astype(np.int64)
    counts = histogram.dense(place, numbers, np.ones(cell.size), BLOCKS * 2, FIRST, BINS)
    return counts.reshape(BLOCKS, 2, BINS).astype(np.uint16)


def _up(counts: Counts, bins: int) -> Counts:
    """Each histogram `bins` further up; what leaves it stays in the last bin."""
    kept = counts.shape[-1] - bins
    moved = np.zeros_like(counts)
    moved[..., bins:] = counts[..., :kept]
    moved[..., -1] += counts[..., kept:].sum(axis=-1, dtype=np.uint16)
    return moved
