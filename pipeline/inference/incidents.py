"""Errors of two arms in, incidents and what they say of the rates of the two out: exact, and valid however often one looks.

Errors of one class on one replica within ten seconds are one incident: with bursts of 15 errors a test of errors alarms falsely on three
days of four, a test of incidents on none (docs/tails.md). Given an incident, the null says it is treated's with the probability of
treated's share of offered requests. An outage that lasts is an incident every ten seconds: of one replica for long, it is no independent
evidence any more, and only the number of replicas makes it so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from pipeline.inference import odds

WINDOW_S = 10.0

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

RATES: Reals = np.array([1.5, 2.0, 3.0, 5.0, 10.0])  # treated's rate over control's, of the alternatives looked for
_STEP = np.arange(1, 65) / 8 * np.log(2)  # an eighth of a doubling, up to 256
GRID: Reals = np.unique(np.round(np.concatenate([-_STEP, [0.0], _STEP, np.log(RATES), -np.log(RATES)]), 12))
"""The logs of the rate ratios whose likelihood is kept."""
_NONE = int(np.flatnonzero(GRID == 0.0)[0])
_ALTERNATIVES = np.searchsorted(GRID, np.round(np.log(RATES), 12))


@dataclass(frozen=True, slots=True)
class State:
    """Per stream: the log-likelihood of each rate ratio of GRID (streams, ratios), and the change detectors' logs (streams, rates).

    `log_m` looks for treated's rate to have risen, `log_m_back` for it not to be above control's any more.
    """

    log_likelihood: Reals
    log_m: Reals
    log_m_back: Reals

    @classmethod
    def start(cls, streams: int) -> Self:
        """An epoch's beginning."""
        empty = np.full((streams, len(RATES)), -np.inf)
        return cls(np.zeros((streams, len(GRID))), empty, empty)


def collapse(replica: Whole, error_class: Whole, at_s: Reals) -> Flags:
    """Which errors to count, (errors,): the first of each replica, error class and ten seconds. In any order, with the same number."""
    keys = np.stack([replica, error_class, np.floor(at_s / WINDOW_S).astype(np.int64)], axis=1)
    _, first = np.unique(keys, axis=0, return_index=True)
    kept = np.zeros(len(at_s), bool)
    kept[first] = True
    return kept


def step(state: State, treated: Reals, control: Reals, share: Reals | float) -> State:
    """One block more: incidents of each arm and treated's share of the requests offered in it, 0..1.

    NaN = no data, the stream is carried on unchanged; so it is with a share of 0 or 1, where no comparison is possible.
    """
    log_m, log_m_back = watched(state.log_m, state.log_m_back, treated, control, share)
    return State(state.log_likelihood + odds.log_ratios(treated, control, share, np.exp(GRID)), log_m, log_m_back)


def watched(log_m: Reals, log_m_back: Reals, treated: Reals, control: Reals, share: Reals | float) -> tuple[Reals, Reals]:
    """The change detectors alone, after one block more: see `step`.

    A block without incidents leaves them as they are. Adding 1 for it would reach every threshold in time, of errors that never came.
    """
    share = np.broadcast_to(np.asarray(share, dtype=np.float64), treated.shape)
    told = (np.isfinite(treated) & np.isfinite(control) & (share > 0) & (share < 1) & (treated + control > 0))[:, None]
    risen = odds.changed(log_m, odds.log_ratios(treated, control, share, RATES))
    lower = odds.changed(log_m_back, odds.log_ratios(treated, control, share, 1 / RATES))
    return np.where(told, risen, log_m), np.where(told, lower, log_m_back)


def log_e(state: State) -> Reals:
    """The log of the e-value against "treated's rate is at most control's" since the epoch began: alarm from ln(1 / alpha) on."""
    since = state.log_likelihood[:, _ALTERNATIVES] - state.log_likelihood[:, [_NONE]]
    return odds.log_mean(since)


def log_change(state: State) -> Reals:
    """The log of the detector's M, of a rise at any time: alarm from ln(blocks per cycle / alpha) on, as for other streams."""
    return odds.log_mean(state.log_m)


def log_change_back(state: State) -> Reals:
    """The log of the M of a detector of treated's rate below control's, as after a fix."""
    return odds.log_mean(state.log_m_back)


def interval(state: State, alpha: float) -> tuple[Reals, Reals]:
    """The confidence sequence (low, high) of treated's rate over control's, per stream; 0 and infinity where it is open.

    Rate ratios whose e-value against a uniform mixture of all is below 1 / alpha, and one step of the grid (9 %) outward.
    """
    mixed = odds.log_mean(state.log_likelihood)
    kept = state.log_likelihood > (mixed - np.log(1 / alpha))[:, None]
    padded = np.concatenate([[-np.inf], GRID, [np.inf]])
    first, last = kept.argmax(axis=1), kept.shape[1] - 1 - kept[:, ::-1].argmax(axis=1)
    return np.exp(padded[first]), np.exp(padded[last + 2])
