"""The blocks of one segment in, whether its lever may be advised for more traffic and what lacks out: `inference.cycle` fed with cells.

A pure function of numbers: whoever advises to widen asks it, and shows what is missing where it says no.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.inference import cycle, matching
from pipeline.inference.contrast import LEAST_REQUESTS
from pipeline.inference.cycle import Seen, Widening

ALPHA = 0.05

Reals = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of one segment, oldest first, the last one now; arrays (blocks,) on the same grid of `block_s` seconds without gaps.

    load: requests of all arms, NaN = unknown. treated, control: their requests. difference, share: contrasts of net ITL (`contrast.block`),
    NaN = none. in_epoch: since the lever's state, its replicas' software or their configuration last changed.
    """

    load: Reals
    treated: Reals
    control: Reals
    difference: Reals
    share: Reals
    in_epoch: Flags
    block_s: float


def seen(blocks: Blocks, alpha: float = ALPHA) -> Seen:
    """What the epoch has seen of the last week's load, and what it found."""
    per_day = round(cycle.DAY_S / blocks.block_s)
    week = blocks.load[-7 * per_day :]
    inside = blocks.in_epoch
    load, has_both = blocks.load[inside], (np.minimum(blocks.treated, blocks.control) >= LEAST_REQUESTS)[inside]
    difference, share = blocks.difference[inside], blocks.share[inside]
    at_peak = cycle.decile(load, week) == 9
    return Seen(
        elapsed_s=float(inside.sum() * blocks.block_s),
        needed_s=cycle.length_s(week, per_day),
        blocks_per_decile=cycle.blocks_per_decile(load, week, has_both),
        peak_share=cycle.peak_share(load, week, has_both),
        gain_low=_gain_low(difference, share, alpha),
        peak_gain_low=_gain_low(difference[at_peak], share[at_peak], alpha),
    )


def advised(
    blocks: Blocks, *, gain_on: float, guard_log_m: float, guard_threshold: float, split_off: bool, alpha: float = ALPHA
) -> tuple[Widening, Seen]:
    """Whether the lever may be advised for more of the segment's traffic, each thing that is missing, and the numbers behind it.

    gain_on: the gain that is asked for. guard_log_m: the highest logarithm of M of a guardrail, guard_threshold: its alarm's M. split_off:
    the arms are not split as meant.
    """
    found = seen(blocks, alpha)
    return cycle.widening(found, gain_on=gain_on, guard_log_m=guard_log_m, guard_threshold=guard_threshold, split_off=split_off), found


def _gain_low(difference: Reals, share: Reals, alpha: float) -> float:
    """The low end of the anytime-valid interval of the gain; NaN where there is none."""
    told = np.isfinite(difference)
    if not told.any():
        return float("nan")
    _, low, _ = matching.intervals(difference[None, told], np.array([share[told].mean()]), alpha)
    return float(low[0]) if np.isfinite(low[0]) else float("nan")
