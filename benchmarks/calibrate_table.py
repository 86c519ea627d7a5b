"""Alarms of simulated days in, cells of a Markdown table out: rates, delays, and what is worse than before."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from inference_watch import Alarms, blocks, delays

Reals = npt.NDArray[np.float64]


def alike(plain: Reals, minutes: int) -> float:
    """The median over days of the correlation of a block's contrast with the next one's."""
    found = np.array([block.difference for block in blocks(plain, minutes)])[1:]
    centered = found - np.nanmean(found, axis=0)
    return float(np.median(np.nansum(centered[1:] * centered[:-1], axis=0) / np.nansum(centered**2, axis=0)))


def ever(found: Alarms) -> float:
    """The share of days with an alarm on either side."""
    return float(np.mean(np.isfinite(np.minimum(found.harm, found.benefit))))


def delay(alarmed: Reals, changed_at: int) -> str:
    """p50/p90 of the delay in minutes, and how many found it in the rest of the day where not all did."""
    found = delays(alarmed, changed_at)
    share = float(np.mean(np.isfinite(found)))
    low, high = (f"{value:.0f}" if np.isfinite(value) else "-" for value in np.quantile(found, [0.5, 0.9], method="inverted_cdf"))
    return f"{low}/{high}" + (f" ({share:.0%} found)" if share < 0.995 else "")


def against(rate: float, was: float | None, count: int, count_before: int) -> str:
    """The rate, marked where it is worse than before by more than 3 standard errors of the difference."""
    if was is None:
        return f"{rate:.3f}"
    both = (rate * count + was * count_before) / (count + count_before)
    error = np.sqrt(both * (1 - both) * (1 / count + 1 / count_before))
    return f"{rate:.3f}" + (" (!)" if rate - was > 3 * error else "")


def shown(was: float | None) -> str:
    """An earlier rate, if there is one."""
    return "" if was is None else f"{was:.3f}"


def header(*cells: str) -> Iterator[str]:
    """The head of a table."""
    yield row(*cells)
    yield "|---" * len(cells) + "|"


def row(*cells: str) -> str:
    """One line of a table."""
    return f"| {' | '.join(cells)} |"
