"""The load of past blocks and what an epoch found in them in; whether a lever may be advised for more traffic, and what lacks, out.

A lever that pays at night may lose at peak: nothing is widened before every load of a full cycle was seen in both arms. Missing evidence
blocks widening; it never disables anything (docs/tails.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

DAY_S = 86_400.0
WEEK_S = 7 * DAY_S
LEAST_WEEKLY_RANGE = 0.2  # of the daily range: more makes the cycle a week
LEAST_BLOCKS_PER_DECILE = 6
LEAST_PEAK_SHARE = 0.95
LEAST_PEAK_BLOCKS = 20  # in the top decile, for its gain to be allowed a small loss

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Seen:
    """What the epoch (since the state's last change) has seen of the last week's load, and what it found.

    elapsed_s, needed_s: the epoch's length and the cycle's. blocks_per_decile (10,): blocks with both arms. peak_share: the highest load
    seen over the week's highest. The gains are the low ends of anytime-valid intervals (ratio, NaN = none): overall and in the top decile.
    """

    elapsed_s: float
    needed_s: float
    blocks_per_decile: Whole
    peak_share: float
    gain_low: float
    peak_gain_low: float


@dataclass(frozen=True, slots=True)
class Widening:
    """Whether widening may be advised, and each thing that is missing, in numbers."""

    may: bool
    missing: tuple[str, ...]


def length_s(load: Reals, blocks_per_day: int) -> float:
    """The length of a full cycle: a week if days differ by over a fifth of what hours do within a day, else a day.

    `load` (blocks,) ends now and is by the block, NaN = unknown. With less than a week of it a week is taken: how days differ is unknown.
    """
    days = len(load) // blocks_per_day
    if days < 7:
        return WEEK_S
    by_day = load[-7 * blocks_per_day :].reshape(7, blocks_per_day)
    if not np.isfinite(by_day).any(axis=1).all():
        return WEEK_S
    within = np.nanmean(np.nanmax(_hourly(by_day), axis=1) - np.nanmin(_hourly(by_day), axis=1))
    means = np.nanmean(by_day, axis=1)
    return WEEK_S if means.max() - means.min() > LEAST_WEEKLY_RANGE * within else DAY_S


def decile(load: Reals, week: Reals) -> Whole:
    """The load decile of each block, 0..9 by the last week's blocks; -1 where the load is unknown."""
    known = week[np.isfinite(week)]
    if not len(known):
        return np.full(len(load), -1)
    edges = np.quantile(known, np.arange(1, 10) / 10)
    return np.where(np.isfinite(load), np.searchsorted(edges, np.nan_to_num(load), side="right"), -1)


def blocks_per_decile(load: Reals, week: Reals, has_both: Flags) -> Whole:
    """How many of the epoch's blocks with both arms fell into each decile of the week's load, (10,)."""
    found = decile(load, week)
    return np.bincount(found[has_both & (found >= 0)], minlength=10)


def peak_share(load: Reals, week: Reals, has_both: Flags) -> float:
    """The highest load that both arms met over the week's highest, ratio; 0 where none did."""
    held = load[has_both & np.isfinite(load)]
    highest = np.nanmax(week) if np.isfinite(week).any() else np.nan
    return float(held.max() / highest) if len(held) and highest > 0 else 0.0


def widening(
    seen: Seen, *, gain_on: float, loss_at_peak: float = 0.0, guard_log_m: float, guard_threshold: float, split_off: bool
) -> Widening:
    """Whether widening may be advised (docs/tails.md).

    gain_on: the gain (ratio) that is asked for. loss_at_peak: how much of a loss the top decile may not exclude once it has 20 blocks.
    guard_log_m: the highest log of M of any guardrail. guard_threshold: its c. split_off: the sample ratio is not as meant.
    """
    thin = np.flatnonzero(seen.blocks_per_decile < LEAST_BLOCKS_PER_DECILE)
    peak_floor = 0.0 - loss_at_peak if seen.blocks_per_decile[9] >= LEAST_PEAK_BLOCKS else 0.0
    checks = (
        (seen.elapsed_s >= seen.needed_s, f"{seen.elapsed_s / 3600:.1f} h of a cycle of {seen.needed_s / 3600:.0f} h"),
        (not len(thin), f"load deciles {[int(one) + 1 for one in thin]} have fewer than {LEAST_BLOCKS_PER_DECILE} blocks with both arms"),
        (seen.peak_share >= LEAST_PEAK_SHARE, f"highest load seen is {100 * seen.peak_share:.0f} % of the week's highest"),
        (seen.gain_low > gain_on, _asked(seen.gain_low, gain_on)),
        (seen.peak_gain_low > peak_floor, f"at the highest tenth of load {_asked(seen.peak_gain_low, peak_floor)}"),
        (guard_log_m <= 0.5 * np.log(guard_threshold), "a guardrail's evidence is past the root of its threshold"),
        (not split_off, "requests are not split between the arms as meant"),
    )
    missing = tuple(said for holds, said in checks if not holds)
    return Widening(not missing, missing)


def _hourly(by_day: Reals) -> Reals:
    """The means of 24 parts of each day, as whole as they can be."""
    parts = np.array_split(by_day, min(24, by_day.shape[1]), axis=1)
    kept = [
        np.where(np.isfinite(part).any(axis=1), np.nansum(part, axis=1) / np.maximum(np.isfinite(part).sum(axis=1), 1), np.nan)
        for part in parts
    ]
    return np.stack(kept, axis=1)


def _asked(low: float, least: float) -> str:
    """The low end of a gain's interval against what is asked for, in words."""
    found = f"at least {low * 100:.1f} %" if np.isfinite(low) else "not known"
    return f"the gain is {found}; at least {least * 100:.1f} % is asked for"
