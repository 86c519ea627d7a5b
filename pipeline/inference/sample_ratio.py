"""Requests of both arms in, evidence that they were not split as was meant, out: a broken split spoils every contrast of the two.

It freezes decisions and accuses no lever (docs/tails.md). Run it per stratum too: a split may be broken for long prompts alone. Two
readings: a beta-binomial e-process since the epoch began, and a detector of a split that breaks later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import betaln

from pipeline.inference import odds

PRIOR = 20.0  # requests that the prior weighs as much as
ODDS: npt.NDArray[np.float64] = np.array(
    [1 / 3, 1 / 2, 2 / 3, 0.8, 0.9, 1.1, 1.25, 1.5, 2.0, 3.0]
)  # treated : control, over what was meant

Reals = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class State:
    """Per stream: requests of each arm since the epoch began, and the detector's logs (streams, odds)."""

    treated: Reals
    control: Reals
    log_m: Reals

    @classmethod
    def start(cls, streams: int) -> Self:
        """An epoch's beginning."""
        return cls(np.zeros(streams), np.zeros(streams), np.full((streams, len(ODDS)), -np.inf))


def step(state: State, treated: Reals, control: Reals, share: Reals | float, cluster: Reals | float = 1.0) -> State:
    """One block more. `share` is treated's share as meant, 0..1; requests that are split together, such as a session's, count as one:
    `cluster` is how many requests a split decides on at once.

    NaN = no data: the stream is carried on unchanged.
    """
    told = np.isfinite(treated) & np.isfinite(control)
    mine, theirs = (np.where(told, count, 0.0) / cluster for count in (treated, control))
    moved = odds.changed(state.log_m, odds.log_ratios(mine, theirs, share, ODDS))
    return State(state.treated + mine, state.control + theirs, np.where(told[:, None], moved, state.log_m))


def log_e(state: State, share: Reals | float) -> Reals:
    """The log of the e-value against "split as meant since the epoch began": beta-binomial with a prior worth 20 requests, around it."""
    own, other = PRIOR * np.asarray(share, dtype=np.float64), PRIOR * (1 - np.asarray(share, dtype=np.float64))
    mixed = betaln(own + state.treated, other + state.control) - betaln(own, other)
    return np.asarray(mixed - state.treated * np.log(share) - state.control * np.log1p(-np.asarray(share)))


def is_off(state: State, share: Reals | float, alpha: Reals | float = 0.01, blocks_per_cycle: float = 288.0) -> Flags:
    """Whether the split is off: since the epoch began, or from some block on. False alarms at most `alpha` per stream and cycle.

    Half of `alpha` goes to each reading. For many strata divide `alpha` by their number.
    """
    since_start = log_e(state, share) >= np.log(2 / alpha)
    return np.asarray(since_start | (odds.log_mean(state.log_m) >= np.log(2 * blocks_per_cycle / alpha)))
