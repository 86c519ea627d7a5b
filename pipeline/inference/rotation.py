"""Which replicas were in control, block by block, in; whether a contrast of the two arms may decide, and of what effect, out.

A replica's own speed stays with it, so an effect measured against two fixed replicas is partly theirs: with 2 % between replicas every
method, anytime-valid or not, alarms falsely on a third to a half of all days (docs/tails.md). Time does not average it away; only
other replicas do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import numpy.typing as npt

MAX_STAY_S = 1_800.0
LEAST_ROTATED = 6  # different replicas that control goes through, where there are as many
LEAST_FIXED = 6
LEAST_TREATED = 6  # replicas of which the spread between replicas is told
LEAST_BLOCKS = 12  # in which a replica is seen before its mean counts for that spread
MARGIN_SDS = 3.0
LEAST_MIXED = 0.9  # of control's replicas and blocks have the other arm too, where arms are split by request
MOST_OVERDUE = 0.1  # of control's replicas and blocks may have stayed for longer: a rotation that was late once goes on
LEAST_MISSED = 10.0  # requests of control that a replica would have got as one of it: without them it has left
STRAY = 0.1  # of a replica's requests in a block: fewer do not put it into that arm

Basis = Literal["same_replicas", "rotating", "offsets_subtracted", "widened_null", "unseen", "refused"]
Flags = npt.NDArray[np.bool_]
Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Seats:
    """Where each replica is: for how many blocks in control, and on which side it was last (1 control, -1 treated, 0 never).

    `unseen` counts the blocks since then, `missed` the requests that it would have got in them as one of control.
    """

    stay: Reals
    side: Reals
    unseen: Reals
    missed: Reals

    @classmethod
    def start(cls, replicas: int) -> Self:
        """Replicas that nobody has seen."""
        return cls(*(np.zeros(replicas) for _ in range(4)))


@dataclass(frozen=True, slots=True)
class Seen:
    """Blocks of replicas, arrays (blocks, replicas): requests of each arm, and for how many blocks each had been in control by then.

    `first` (pools,) is the place of each pool's first replica: those of a pool stand together.
    """

    treated_n: Reals
    control_n: Reals
    stay: Reals
    first: Whole
    block_s: float


@dataclass(frozen=True, slots=True)
class Replicas:
    """What was seen of control's replicas: how many at once (median), how many different ones, of how many, and the longest stay (s).

    `overdue` is the share of control's replicas and blocks that had stayed too long, `is_overdue` whether one has now, `seen_s` for how
    long there has been a control, `treated_at_once` the median number of the other arm, `mixed` the share of control's replicas and blocks
    that served the other arm too.
    """

    at_once: float
    different: int
    of_all: float
    longest_stay_s: float
    overdue: float
    is_overdue: bool
    seen_s: float
    treated_at_once: float
    mixed: float


@dataclass(frozen=True, slots=True)
class Permission:
    """Whether a contrast may decide, on what basis, and by what ratio the null is widened: harm counts from a gain below -margin on."""

    decides: bool
    basis: Basis
    margin: float
    reason: str


def step(before: Seats, treated_n: Reals, control_n: Reals, share: Reals) -> Seats:
    """One block more. `share` is how many requests each replica would have got as one of control.

    Silence ends no stay: a replica without requests is where it was when it is seen in control again, unless others of control had many
    meanwhile, as while it reads prompts for treated. A replica with both arms comes or leaves in that block, and half of it counts.
    """
    control, treated = _seated(treated_n, control_n)
    was_control = (before.side > 0) & (before.missed < LEAST_MISSED)
    carried = np.where(was_control, before.stay + before.unseen, 0.0)
    stay = np.where(control, carried + np.where(treated, 0.5, 1.0), np.where(treated, 0.0, before.stay))
    side = np.where(control & ~(treated & was_control), 1.0, np.where(treated, -1.0, before.side))
    seen = control | treated
    return Seats(stay, side, np.where(seen, 0.0, before.unseen + 1), np.where(seen, 0.0, before.missed + share))


def shares(control_n: Reals, first: Whole) -> Reals:
    """How many requests each replica would get as one more of control, by block (rows). `first` as in `Seen`."""
    total, replicas = np.add.reduceat(control_n, first, axis=1), np.add.reduceat(control_n > 0, first, axis=1, dtype=np.int64)
    of_pool = np.diff([*first, control_n.shape[1]])
    return np.repeat(total / (replicas + 1), of_pool, axis=1)


def observed(seen: Seen) -> list[Replicas]:
    """What these blocks say of each pool's control replicas."""
    control, treated = _seated(seen.treated_n, seen.control_n)
    of_pool = [np.add.reduceat(flags, seen.first, axis=1, dtype=np.int64) for flags in (control, treated, control | treated)]
    any_control = seen.control_n > 0
    counted, both = (
        np.add.reduceat(flags, seen.first, axis=1, dtype=np.int64) for flags in (any_control, any_control & (seen.treated_n > 0))
    )
    late = np.add.reduceat(control & (seen.stay > MAX_STAY_S / seen.block_s + 1), seen.first, axis=1, dtype=np.int64)
    stay = np.where(control, seen.stay, 0.0).max(axis=0, initial=0.0)
    has_control = of_pool[0] > 0
    columns = (
        _median(of_pool[0]),
        np.add.reduceat(control.any(axis=0), seen.first, dtype=np.int64),
        _median(of_pool[2]),
        np.maximum.reduceat(stay, seen.first) * seen.block_s,
        late.sum(axis=0) / np.maximum(of_pool[0].sum(axis=0), 1),
        late[-1] > 0,
        np.where(has_control.any(axis=0), len(has_control) - has_control.argmax(axis=0), 0) * seen.block_s,
        _median(of_pool[1]),
        both.sum(axis=0) / np.maximum(counted.sum(axis=0), 1),
    )
    return [Replicas(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def observe(treated_n: Reals, control_n: Reals, block_s: float) -> Replicas:
    """What a day's blocks say of one pool's control replicas. Both arrays have shape (blocks, replicas): requests of that arm."""
    first = np.zeros(1, np.int64)
    seats, stays = Seats.start(treated_n.shape[1]), []
    for block in zip(treated_n, control_n, shares(control_n, first), strict=True):
        seats = step(seats, *block)
        stays.append(seats.stay)
    return observed(Seen(treated_n, control_n, np.array(stays), first, block_s))[0]


def permission(seen: Replicas, *, is_calibrated: bool = False, replica_sd: float = float("nan")) -> Permission:
    """Whether these replicas may carry a decision (docs/tails.md).

    `is_calibrated` says that an A/A period's offsets were subtracted; `replica_sd` is the relative sd between replicas, NaN if unknown.
    """
    stays = f"longest stay {seen.longest_stay_s / 60:.0f} min"
    said = f"{seen.at_once:g} of {seen.of_all:g} replicas in control at once, {seen.different} different ones, {stays}"
    if seen.mixed >= LEAST_MIXED:
        return Permission(True, "same_replicas", 0.0, f"arms split by request on {seen.of_all:g} replicas")
    is_on_time = seen.overdue <= MOST_OVERDUE and not seen.is_overdue
    if is_on_time and _is_complete(seen):
        return Permission(True, "rotating", 0.0, said)
    if is_calibrated and seen.at_once >= LEAST_FIXED:
        return Permission(True, "offsets_subtracted", 0.0, said)
    left_s = _rotation_s(seen) - seen.seen_s
    if is_on_time and left_s > 0:
        return Permission(False, "unseen", float("inf"), f"{said}; whether they rotate is known in {left_s / 60:.0f} min at the latest")
    limit = margin(replica_sd, seen.at_once, seen.treated_at_once)
    if np.isfinite(limit):
        return Permission(True, "widened_null", limit, f"{said}: fixed, so only a loss or gain above {100 * limit:.1f} % is the lever's")
    needs = f"needs control to rotate within {MAX_STAY_S / 60:.0f} min through all replicas or {LEAST_ROTATED} of them"
    return Permission(False, "refused", float("inf"), f"{said}: {needs}, or arms split by request on the same replicas")


def margin(replica_sd: float, control: float, treated: float) -> float:
    """By what ratio the null is widened: three sds of the difference that the replicas alone make. Infinite where that is unknown."""
    if not np.isfinite(replica_sd) or min(control, treated) < 1:
        return float("inf")
    return float(MARGIN_SDS * replica_sd * np.sqrt(1 / control + 1 / treated))


def replica_sd(relative: Reals) -> float:
    """The sd between replicas of one arm. `relative` has shape (blocks, replicas): its value over the arm's in that block, NaN if none.

    What a replica's mean still owes to noise is in it: a null widened by too much is safe. NaN with fewer than six replicas.
    """
    known = np.isfinite(relative)
    blocks = known.sum(axis=0)
    enough = blocks >= LEAST_BLOCKS
    if enough.sum() < LEAST_TREATED:
        return float("nan")
    kept, n = relative[:, enough], blocks[enough]
    return float((np.nansum(kept, axis=0) / n).std(ddof=1))


def _is_complete(seen: Replicas) -> bool:
    """A rotation among few replicas of many leaves their offsets in the contrast, as fixed ones do: a rule of ours, not of the paper."""
    return seen.different >= min(LEAST_ROTATED, seen.of_all) and seen.different > seen.at_once > 0


def _rotation_s(seen: Replicas) -> float:
    """How long a rotation takes at most until it is known: it may have begun with a stay that was half over."""
    if seen.at_once == 0:
        return 0.0
    return (math.ceil(min(LEAST_ROTATED, seen.of_all) / seen.at_once) + 1) * MAX_STAY_S


def _seated(treated_n: Reals, control_n: Reals) -> tuple[Flags, Flags]:
    """(in control, in treated): stray requests of another arm put no replica into it."""
    least = STRAY * (treated_n + control_n)
    return (control_n > 0) & (control_n >= least), (treated_n > 0) & (treated_n >= least)


def _median(counts: Whole) -> Reals:
    """How many replicas are there at once, of the blocks (rows) that have any."""
    present, known = np.sort(np.where(counts > 0, counts, np.inf), axis=0), (counts > 0).sum(axis=0)
    middle = [np.take_along_axis(present, np.maximum(place, 0)[None], axis=0)[0] for place in ((known - 1) // 2, known // 2)]
    return np.where(known > 0, (middle[0] + middle[1]) / 2, 0.0)
