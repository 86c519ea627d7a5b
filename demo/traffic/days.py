"""The load over time: a day's swing, bursts, and what a scenario changes, as factors at an hour."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable

import numpy as np

from demo.scenarios.layout import Change, Day

BURST_CELL_S = 300.0


def load(day: Day, hour: float) -> float:
    """The load at an hour of the scenario, relative to the day's mean, bursts left out."""
    return 1 + day.swing * math.cos(2 * math.pi * (hour - day.peak_hour) / 24)


def burst(day: Day, name: str, block: int, seed: int) -> float:
    """What bursts make of a block's arrivals: the factor of a block of five minutes in which one begins."""
    if not day.burst_every_hours:
        return 1.0
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), block & 0xFFFFFFFF, 7])
    if rng.random() >= BURST_CELL_S / 3600 / day.burst_every_hours:
        return 1.0
    return 1 + (day.burst_factor - 1) * min(day.burst_minutes * 60 / BURST_CELL_S, 1.0)


def turned(changes: Iterable[Change], of: str, knob: str, hour: float) -> float:
    """The factor by which a knob is turned at an hour."""
    factor = 1.0
    for change in changes:
        if change.of == of and change.knob == knob and hour >= change.from_hour:
            done = min((hour - change.from_hour) / change.over_hours, 1.0) if change.over_hours else 1.0
            factor *= change.factor**done
    return factor
