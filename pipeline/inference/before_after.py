"""Sums of two times in, what changed between them out: to be shown, and never acted on.

Two hours against the two before alarm falsely in 84 % of cases (docs/switchback.md): the change has no interval here, since any would be
taken for one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.inference.contrast import Sums

BASIS = "before_after"
NOTE = "before and after: load, mix and everything else changed too; shown, not judged"

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Change:
    """Per stream: the metric before and after, in its unit, and the gain (ratio, positive = better); NaN where a time has no requests."""

    before: Reals
    after: Reals
    gain: Reals


def change(before: Sums, after: Sums, sign: float | Reals = 1.0) -> Change:
    """What changed; sign: 1 where lower is better, -1 where higher is."""
    first, second = _ratio(before), _ratio(after)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(first > 0, sign * (1 - second / first), np.nan)
    return Change(first, second, gain)


def _ratio(sums: Sums) -> Reals:
    return np.divide(sums.num, sums.den, out=np.full_like(sums.num, np.nan), where=sums.den > 0)
