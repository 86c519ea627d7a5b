"""Traffic and its noise in, the smallest control slice that would answer out: in requests and in hours.

The detector's median delay is about 1.3 * 2 ln(B / alpha) * (phi * sd / delta)^2 blocks and one alarm of ten takes three times that, with
sd^2 = cv^2 * (1 / n_C + 1 / n_T) + a: half the effect takes four times as long (docs/tails.md; the test simulates it).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.inference import scale
from pipeline.inference.block_length import LEAST_CONTROL

LEAST_REPLICAS = 2.0  # in control at once
SHARES: npt.NDArray[np.float64] = np.arange(1, 501) / 1_000
MOST_BLOCK_S = 3_600.0
LEAST_BLOCKS = 6  # in a state, before a decision
SLOW = 3.0  # nine answers of ten come within so many medians
_DELAY = 1.3 * 2.0

Reals = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Per stream, (streams,): requests of both arms an hour, one request's variance over the squared mean, and the variance that blocks of
    `block_s` have beyond that of their requests (relative, long-run). replicas: how many serve it, infinite where arms split by request.
    """

    requests_per_hour: Reals
    cv_squared: Reals
    cluster_variance: Reals
    replicas: Reals
    block_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be found (a change of the metric, ratio), within how many hours in nine cases of ten, at what error rate a cycle.

    `is_new` says that no scale is known of earlier cycles: then the burn-in of the scale comes on top.
    """

    change: float
    within_hours: float
    alpha: float = 0.05
    cycle_s: float = 86_400.0
    phi: float = scale.PHI
    is_new: bool = True


@dataclass(frozen=True, slots=True)
class Holdout:
    """Per stream, (streams,): control's share (0..0.5), its requests until the median answer, hours until it and until nine of ten.

    block_s: the blocks' length at that share. Where `is_reached` is false, no share answers in time: it is the one that answers first.
    """

    share: Reals
    requests: Reals
    hours: Reals
    hours_p90: Reals
    block_s: Reals
    is_reached: Flags


def smallest(traffic: Traffic, question: Question) -> Holdout:
    """The smallest control slice, by 0.1 %, of which nine answers of ten come in time, with two replicas in it at least."""
    each = [hours(traffic, question, np.full(len(traffic.replicas), share)) for share in SHARES]
    nine_of_ten = np.stack([one[1] for one in each], axis=1)
    allowed = traffic.replicas[:, None] * SHARES >= LEAST_REPLICAS - 1e-9
    in_time = allowed & (nine_of_ten <= question.within_hours)
    reached = np.asarray(np.any(in_time, axis=1))
    place = np.where(reached, in_time.argmax(axis=1), np.where(allowed, nine_of_ten, np.inf).argmin(axis=1))
    share = SHARES[place]
    found, slow, block_s = hours(traffic, question, share)
    known = np.asarray(np.any(allowed, axis=1)) & np.isfinite(found)
    requests = traffic.requests_per_hour * share * np.where(known, found, 0.0)
    share, requests, found, slow, block_s = (np.where(known, value, np.nan) for value in (share, requests, found, slow, block_s))
    return Holdout(share, requests, found, slow, block_s, reached)


def hours(traffic: Traffic, question: Question, share: Reals) -> tuple[Reals, Reals, Reals]:
    """Hours until the median answer and until nine of ten, and the length of a block (s), at a given control share, per stream.

    Infinite where even an hour has fewer than 100 control requests.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        control = traffic.requests_per_hour * share
        filled_s = LEAST_CONTROL / control * 3600
        block_s = np.maximum(traffic.block_s, np.ceil(filled_s / traffic.block_s) * traffic.block_s)
        in_block = control * block_s / 3600
        requests = traffic.cv_squared * (1 / in_block + share / (1 - share) / in_block)
        variance = requests + traffic.cluster_variance * traffic.block_s / block_s
        evidence = np.log(question.cycle_s / block_s / question.alpha)
        blocks = np.maximum(_DELAY * evidence * variance * (question.phi / question.change) ** 2, LEAST_BLOCKS)
        told = (block_s <= MOST_BLOCK_S) & np.isfinite(blocks)
        burn_in_h = _burn_in_s(block_s) / 3600 if question.is_new else np.zeros_like(share)
        median, slow = (np.where(told, burn_in_h + factor * blocks * block_s / 3600, np.inf) for factor in (1.0, SLOW))
    return median, slow, np.where(told, block_s, np.nan)


def _burn_in_s(block_s: Reals) -> Reals:
    lags = np.maximum(scale.LEAST_LAGS, np.ceil(scale.SPAN_S / block_s))
    return np.asarray(4 * lags * block_s)
