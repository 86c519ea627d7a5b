"""Cells of replicas that switch a lever on and off by a drawn schedule in, one contrast a pair of periods out.

A pair's two periods lie side by side in time, in an order drawn by chance: where no control arm runs beside the treated one, that is the
next best. Blocks that reach into a period's burn-in or tail are left out. The contrasts go into `interval` and `detector` as blocks do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from pipeline.inference import contrast
from pipeline.inference.contrast import Reference, Sums

BASIS = "switchback"

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Periods:
    """A lever's schedule, an array (periods,) each: replica (a number), number of the pair, arm, and the measured time in seconds."""

    replicas: Whole
    pairs: Whole
    is_treated: Truths
    since_s: Reals
    until_s: Reals


@dataclass(frozen=True, slots=True)
class Pairs:
    """Sums of both arms, arrays (streams, pairs), with the numbers (pairs,) in time and their last measured moments (seconds)."""

    treated: Sums
    control: Sums
    numbers: Whole
    ended_s: Reals


@dataclass(frozen=True, slots=True)
class Differences:
    """Contrasts and gains of pairs, arrays (streams, pairs); NaN where an arm has too few requests, and in the first pair."""

    difference: Reals
    gain: Reals


def placed(periods: Periods, replicas: Whole, starts_s: Reals, block_s: float) -> Whole:
    """The period (its place) that measures each block of a replica from beginning to end; -1 where none does."""
    found = np.full(len(replicas), -1, np.int64)
    for place in range(len(periods.replicas)):
        inside = (starts_s >= periods.since_s[place]) & (starts_s + block_s <= periods.until_s[place])
        found[inside & (replicas == periods.replicas[place])] = place
    return found


def whole(periods: Periods, places: Whole, is_wrong: Truths) -> Whole:
    """The places with those of a replica's pair put to -1 where a block of it is wrong, or where one of its two periods has none.

    Else the arms of a pair would be of different replicas.
    """
    of_replica = np.unique(np.stack([periods.replicas, periods.pairs]), axis=1, return_inverse=True)[1].reshape(-1)
    count = int(of_replica.max(initial=-1)) + 1
    used = places >= 0
    arms = np.zeros((count, 2), np.bool_)
    arms[of_replica[places[used]], periods.is_treated[places[used]].astype(np.int64)] = True
    good: Truths = np.all(arms, axis=1)
    good[of_replica[places[used & is_wrong]]] = False
    kept = places.copy()
    kept[used] = np.where(good[of_replica[places[used]]], places[used], -1)
    return kept


def paired(periods: Periods, places: Whole, streams: Whole, rows: Sums, count: int) -> Pairs:
    """The sums of `count` streams by pair and arm: `rows` are cells, with the period and the stream (a number) of each.

    Replicas are taken together by the pair's number: what they share, such as load, would be counted as often as there are replicas.
    """
    numbers, ended_s, of_period = _in_time(periods)
    used = places >= 0
    cell = streams[used] * len(numbers) + of_period[places[used]]
    is_treated = periods.is_treated[places[used]]
    values = [part[used] for part in (rows.n, rows.num, rows.den, rows.num_sq, rows.den_sq, rows.num_den)]
    shape = (count, len(numbers))
    treated, control = (_summed(cell, values, of, shape) for of in (is_treated, ~is_treated))
    return Pairs(treated, control, numbers, ended_s)


def differences(pairs: Pairs, theta0: float | Reals = 1.0, sign: float | Reals = 1.0) -> Differences:
    """Each pair's contrast against the null `theta0`, positive where treated is worse, and its gain where `theta0` is 1.

    `theta0` and `sign` (1 where lower is better, -1 where higher is) are numbers or arrays (streams,).
    """
    reference = Reference.start(len(pairs.treated.n))
    found = []
    for place in range(len(pairs.numbers)):
        treated, control = _at(pairs.treated, place), _at(pairs.control, place)
        told = contrast.block(treated, control, reference, theta0, sign)
        gain = np.where(np.isfinite(told.difference), contrast.gain(told.difference, told.share, sign), np.nan)
        found.append((told.difference, gain))
        reference = contrast.learn(reference, treated, control)
    difference, gain = np.array(found).reshape(-1, 2, len(pairs.treated.n)).transpose(1, 2, 0)
    return Differences(difference, gain)


def log_e_of_order(differences: Reals, expected: float) -> Reals:
    """The logarithm of the evidence that treated is worse, exact by the drawn order alone, per stream and pair (arrays (streams, pairs)).

    Without an effect each difference is as likely to have the other sign, whatever the load does; so exp(l D - l^2 D^2 / 2) is a fair bet
    (Howard et al. 1810.08240, symmetric case), mixed over l > 0. `expected` is the sum of squared differences at which it is sharpest.
    """
    known = np.nan_to_num(differences)
    s, v = np.cumsum(known, axis=1), np.cumsum(known**2, axis=1)
    spread = v + expected
    return np.asarray(0.5 * np.log(4 * expected / spread) + s**2 / (2 * spread) + log_ndtr(s / np.sqrt(spread)))


def _in_time(periods: Periods) -> tuple[Whole, Reals, Whole]:
    """The pairs' numbers and ends in the order in which they end, and the place of each period's pair among them."""
    numbers, of_period = np.unique(periods.pairs, return_inverse=True)
    ended_s = np.full(len(numbers), -np.inf)
    np.maximum.at(ended_s, of_period, periods.until_s)
    order = np.argsort(ended_s, kind="stable")
    return numbers[order], ended_s[order], np.argsort(order)[of_period]


def _summed(cell: Whole, values: list[Reals], of: Truths, shape: tuple[int, int]) -> Sums:
    def added(part: Reals) -> Reals:
        return np.bincount(cell[of], part[of], shape[0] * shape[1]).astype(np.float64).reshape(shape)

    return Sums(*(added(part) for part in values))


def _at(sums: Sums, place: int) -> Sums:
    return Sums(*(part[:, place] for part in (sums.n, sums.num, sums.den, sums.num_sq, sums.den_sq, sums.num_den)))
