"""Studentized contrasts in, since when the lever may be worse than the null allows out, and by how much since: for people to read.

The detector says that something has changed; this says when it may have begun: at the last moment at which the contrasts since then had
summed up to nothing (the change point of Page's cumulative sum). It decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class State:
    """Per stream since its last turn: the sum of z, how many contrasts, their sum, and the sum of treated's shares of requests."""

    total: Reals
    n: Reals
    difference: Reals
    share: Reals

    @classmethod
    def start(cls, streams: int) -> Self:
        """Nothing has turned."""
        return cls(*np.zeros((4, streams)))


def step(state: State, z: Reals, difference: Reals, share: Reals) -> State:
    """The state after one more block: `z` is the contrast in standard deviations, positive = against the null; NaN leaves it as it was."""
    told = np.isfinite(z)
    total = np.where(told, np.maximum(0.0, state.total + np.where(told, z, 0.0)), state.total)
    goes_on = total > 0
    grown = (state.n + told, state.difference + np.where(told, difference, 0.0), state.share + np.where(told, share, 0.0))
    return State(total, *(np.where(goes_on, one, 0.0) for one in grown))


def means(state: State) -> tuple[Reals, Reals]:
    """(mean contrast, mean share of treated) since the turn, per stream; NaN where nothing has turned."""
    some = state.n > 0
    count = np.where(some, state.n, 1.0)
    return np.where(some, state.difference / count, np.nan), np.where(some, state.share / count, np.nan)
