"""The fleet's physics as formulas: hours and batches in, seconds a step and gains out. Works on numbers and on numpy arrays alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from demo.scenarios import Change, Day, Lane, Pool, Speculation

Floats: TypeAlias = npt.NDArray[np.float64]


def load(day: Day, hour: Floats) -> Floats:
    """The load at an hour, relative to the day's mean."""
    return 1 + day.swing * np.cos(2 * np.pi * (hour - day.peak_hour) / 24)


def batch(lane: Lane, day: Day, changes: Iterable[Change], hour: Floats) -> Floats:
    """The sequences a replica of the lane runs at that hour; `changes` are those that meet this lane."""
    sequences = lane.batch * load(day, hour)
    for change in changes:
        grown = np.clip((hour - change.from_hour) / max(change.over_hours, 1e-9), 0, 1)
        sequences = sequences * (1 + grown * (change.batch_factor - 1))
    return sequences


def step_s(pool: Pool, lane: Lane, sequences: Floats) -> Floats:
    """Seconds of one decode step without speculation: the weights are read once, every sequence adds its own."""
    return pool.base_step_s + lane.per_sequence_s * sequences


def verified_step_s(pool: Pool, lane: Lane, speculation: Speculation, sequences: Floats) -> Floats:
    """Seconds of one decode step with speculation: every sequence adds the drafts that must be verified."""
    return step_s(pool, lane, sequences) + speculation.overhead_s + speculation.verify_per_sequence_s * sequences


def tokens_per_step(speculation: Speculation) -> float:
    """Tokens that a decode step yields on average: one, and the accepted drafts of the steps that draft."""
    return 1 + speculation.coverage * speculation.draft_tokens * speculation.acceptance


def gain(pool: Pool, lane: Lane, speculation: Speculation, sequences: Floats) -> Floats:
    """The net gain of speculation at a batch: 1 - treated / control of the time per token."""
    return 1 - verified_step_s(pool, lane, speculation, sequences) / tokens_per_step(speculation) / step_s(pool, lane, sequences)
