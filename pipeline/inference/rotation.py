"""Which replicas were in control, block by block, in; whether a contrast of the two arms may decide, and of what effect, out.

A replica's own speed stays with it, so an effect measured against two fixed replicas is partly theirs: with 2 % between replicas every
method, anytime-valid or not, alarms falsely on a third to a half of all days (docs/tails.md). Time does not average it away; only
other replicas do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

MAX_STAY_S = 1_800.0
LEAST_AT_ONCE = 2
LEAST_FIXED = 6
LEAST_TREATED = 6  # replicas of which the spread between replicas is told
MARGIN_SDS = 3.0
LEAST_MIXED = 0.9  # of control's replicas and blocks have the other arm too, where arms are split by request

Basis = Literal["same_replicas", "rotating", "offsets_subtracted", "widened_null", "refused"]
Flags = npt.NDArray[np.bool_]
Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Replicas:
    """What was seen of control's replicas: how many at once (median), how many different ones, of how many, and the longest stay (s).

    `changes` is how often a replica left control or came to it; `treated_at_once` the median number of the other arm; `mixed` the share of
    control's replicas and blocks that served the other arm too.
    """

    at_once: float
    different: int
    of_all: int
    longest_stay_s: float
    changes: int
    treated_at_once: float
    mixed: float


@dataclass(frozen=True, slots=True)
class Permission:
    """Whether a contrast may decide, on what basis, and by what ratio the null is widened: harm counts from a gain below -margin on."""

    decides: bool
    basis: Basis
    margin: float
    reason: str


def observe(in_control: Flags, in_treated: Flags, block_s: float) -> Replicas:
    """What a day's blocks say of control's replicas. Both arrays have shape (blocks, replicas): whether it had requests of that arm.

    Silence ends no stay: a replica without requests is where it was when it is seen in control again.
    """
    stay, longest, was = (np.zeros(in_control.shape[1]) for _ in range(3))
    since_seen = np.zeros(in_control.shape[1])
    changes = 0
    for control, treated in zip(in_control, in_treated, strict=True):
        only_treated = treated & ~control
        share = np.where(treated, 0.5, 1.0)  # of a block in which it was in both arms
        stay = np.where(only_treated, 0.0, stay + np.where(control, since_seen + share, 0.0))
        since_seen = np.where(control | treated, 0.0, np.where(stay > 0, since_seen + 1, 0.0))
        longest = np.maximum(longest, stay)
        now = np.where(control, 1.0, np.where(treated, -1.0, was))
        changes += int(((now * was) < 0).sum())
        was = now
    return Replicas(
        at_once=_median(in_control),
        different=int(in_control.any(axis=0).sum()),
        of_all=int((in_control | in_treated).any(axis=0).sum()),
        longest_stay_s=float(longest.max(initial=0.0) * block_s),
        changes=changes,
        treated_at_once=_median(in_treated),
        mixed=float((in_control & in_treated).sum() / max(int(in_control.sum()), 1)),
    )


def permission(seen: Replicas, *, is_calibrated: bool = False, replica_sd: float = float("nan")) -> Permission:
    """Whether these replicas may carry a decision (docs/tails.md).

    `is_calibrated` says that an A/A period's offsets were subtracted; `replica_sd` is the relative sd between replicas, NaN if unknown.
    """
    said = (
        f"{seen.at_once:g} control replicas at once, {seen.different} of {seen.of_all} seen there, stay {seen.longest_stay_s / 60:.0f} min"
    )
    if seen.mixed >= LEAST_MIXED:
        return Permission(True, "same_replicas", 0.0, f"arms split by request on {seen.at_once:g} replicas")
    if _rotates(seen):
        return Permission(True, "rotating", 0.0, said)
    if is_calibrated and seen.at_once >= LEAST_FIXED:
        return Permission(True, "offsets_subtracted", 0.0, said)
    limit = margin(replica_sd, seen.at_once, seen.treated_at_once)
    if np.isfinite(limit):
        return Permission(True, "widened_null", limit, f"{said}: fixed, so only a loss above {limit:.1%} is the lever's")
    needs = f"needs {LEAST_AT_ONCE} that rotate within {MAX_STAY_S / 60:.0f} min, or {LEAST_FIXED} fixed ones with an A/A period"
    return Permission(False, "refused", float("inf"), f"{said}: {needs}")


def margin(replica_sd: float, control: float, treated: float) -> float:
    """By what ratio the null is widened: three sds of the difference that the replicas alone make. Infinite where that is unknown."""
    if not np.isfinite(replica_sd) or min(control, treated) < 1:
        return float("inf")
    return float(MARGIN_SDS * replica_sd * np.sqrt(1 / control + 1 / treated))


def replica_sd(relative: Reals) -> float:
    """The sd between replicas of one arm. `relative` has shape (blocks, replicas): its value over the arm's in that block, NaN if none.

    What a replica's mean owes to noise over its blocks is taken off. NaN with fewer than six replicas.
    """
    known = np.isfinite(relative)
    blocks = known.sum(axis=0)
    enough = blocks >= 3
    if enough.sum() < LEAST_TREATED:
        return float("nan")
    kept, n = relative[:, enough], blocks[enough]
    means = np.nansum(kept, axis=0) / n
    noise = np.nansum((kept - means) ** 2, axis=0) / (n - 1) / n
    return float(np.sqrt(max(means.var(ddof=1) - noise.mean(), 0.0)))


def _rotates(seen: Replicas) -> bool:
    """A rotation among few replicas of many leaves their offsets in the contrast, as fixed ones do: a rule of ours, not of the paper."""
    enough = seen.different >= min(LEAST_FIXED, seen.of_all)
    return seen.changes > 0 and enough and seen.at_once >= LEAST_AT_ONCE and seen.longest_stay_s <= MAX_STAY_S


def _median(present: Flags) -> float:
    """How many replicas are there at once, of the blocks that have any."""
    counts = present.sum(axis=1)
    return float(np.median(counts[counts > 0])) if (counts > 0).any() else 0.0
