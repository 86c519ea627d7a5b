"""Sums of base blocks in; how many of them to take together, and the sums of those that were taken together, out.

A block says something once it has enough control requests, and blocks replicate each other once neighbors have little in common
(docs/tails.md). Counts of control decide, never its values, so that no outcome can choose its own block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

LEAST_CONTROL = 100.0
LEAST_EXCEEDANCES = 10.0  # of control, in a block
MOST_CORRELATION = 0.3  # of a block with the next
MULTIPLES = (1, 2, 3, 4, 6, 12)
LEAST_BLOCKS = 24  # after taking together, to tell a correlation
LIMIT_BLOCKS = 72  # a block is closed after so many base blocks, whatever is in it
_SPAN = 4  # lags that the correlation is measured against, at least

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Choice:
    """Per stream: how many base blocks to take together, the correlation of neighbors at that length (NaN if untold), whether it holds.

    by_requests: the length that control's requests alone ask for. is_alike: neighbors are alike at every length; then the longest is taken
    and no action may follow (`uncalibrated`).
    """

    multiple: Whole
    by_requests: Whole
    correlation: Reals
    is_settled: Flags
    is_alike: Flags


def control_needed(share: float | None = None) -> float:
    """The control requests that a block needs: for a mean 100, for the exceedances of a quantile `share` (such as 0.99) ten of those."""
    return LEAST_CONTROL if share is None else max(LEAST_CONTROL, LEAST_EXCEEDANCES / (1 - share))


def choose(treated: Reals, control: Reals, control_n: Reals, needed: float = LEAST_CONTROL) -> Choice:
    """The shortest length that has enough control requests in the median block and little correlation of neighbors, per stream.

    Both arms have shape (streams, blocks, 2), num and den of a ratio of sums; `control_n` (streams, blocks) counts control's requests.
    Zeros = no data in that block. Decide it on past blocks, when a stream begins anew: a day of 5-minute blocks tells up to an hour. Where
    requests alone ask for longer blocks, their correlation may exceed 0.3 by the standard error that so few of them leave it: else chance
    would lengthen blocks that are long already.
    """
    streams, blocks = control_n.shape
    multiple, by_requests = np.full((2, streams), MULTIPLES[-1], np.int64)
    correlation = np.full(streams, np.nan)
    settled, counted, alike = np.zeros((3, streams), bool)
    for length in MULTIPLES:
        if blocks // length < LEAST_BLOCKS and length > 1:
            break
        contrast = _ratio(_together(treated, length)) - _ratio(_together(control, length))
        found, error = lag_one(contrast), 1 / np.sqrt(np.maximum(np.isfinite(contrast).sum(axis=1), 1))
        enough = _median_count(_together(control_n[:, :, None], length)[:, :, 0]) >= needed
        by_requests = np.where(enough & ~counted, length, by_requests)
        most = MOST_CORRELATION + np.where(counted | (length == 1), 0.0, error)
        taken = ~settled & enough & (found <= most)
        correlation = np.where(settled, correlation, found)
        multiple = np.where(taken, length, multiple)
        settled, counted = settled | taken, counted | enough
        alike = ~settled & (found > most)
    return Choice(multiple, by_requests, correlation, settled, alike)


def lag_one(contrasts: Reals, span: int = 12) -> Reals:
    """The correlation of each stream's contrasts (streams, blocks) with the next ones; NaN where fewer than 24 are known.

    From half squared differences, 1 - V_1 / V_K: a lasting shift, such as the effect sought, leaves it as it is (docs/tails.md).
    """
    reach = max(_SPAN, min(span, contrasts.shape[1] // 4))
    near, far = _half_square(contrasts, 1), _half_square(contrasts, reach)
    told = (np.isfinite(contrasts).sum(axis=1) >= LEAST_BLOCKS) & (far > 0)
    return np.where(told, 1 - near / np.where(told, far, 1.0), np.nan)


@dataclass(frozen=True, slots=True)
class Open:
    """Per stream the block that is not closed yet: its sums (streams, k), its control requests, how many base blocks are in it."""

    sums: Reals
    control_n: Reals
    blocks: Whole

    @classmethod
    def start(cls, streams: int, columns: int) -> Self:
        """Nothing open."""
        return cls(np.zeros((streams, columns)), np.zeros(streams), np.zeros(streams, np.int64))


@dataclass(frozen=True, slots=True)
class Closed:
    """Which streams closed a block now, and its sums (streams, k), NaN where none closed."""

    is_closed: Flags
    sums: Reals


def add(held: Open, sums: Reals, control_n: Reals, multiple: Whole | int = 1, needed: Reals | float = LEAST_CONTROL) -> tuple[Open, Closed]:
    """One base block more: the streams that have `multiple` blocks and `needed` control requests close theirs and start anew.

    Base blocks without data add zeros. After 72 a block is closed as it is: a contrast skips it if control has fewer than five.
    """
    grown, counted, blocks = held.sums + sums, held.control_n + control_n, held.blocks + 1
    closed = (blocks >= multiple) & ((counted >= needed) | (blocks >= LIMIT_BLOCKS))
    rest = Open(np.where(closed[:, None], 0.0, grown), np.where(closed, 0.0, counted), np.where(closed, 0, blocks))
    return rest, Closed(closed, np.where(closed[:, None], grown, np.nan))


def _together(sums: Reals, length: int) -> Reals:
    """Sums of `length` neighbors each; the oldest blocks that fill none are left out."""
    streams, blocks, columns = sums.shape
    kept = blocks // length * length
    return np.asarray(sums[:, blocks - kept :].reshape(streams, kept // length, length, columns).sum(axis=2))


def _ratio(sums: Reals) -> Reals:
    """Each block's ratio over the arm's level; NaN without data. The level scales all alike, and drops out of a correlation."""
    num, den = sums[:, :, 0], sums[:, :, 1]
    level = num.sum(axis=1, keepdims=True) / np.maximum(den.sum(axis=1, keepdims=True), 1e-300)
    known = (den > 0) & (level > 0)
    return np.where(known, num / np.where(known, den * level, 1.0), np.nan)


def _median_count(counts: Reals) -> Reals:
    """Of the blocks that have any request; 0 where none has."""
    some = np.any(counts > 0, axis=1, keepdims=True)
    held = np.where((counts > 0) | ~some, counts, np.nan)
    return np.asarray(np.nanmedian(held, axis=1))


def _half_square(contrasts: Reals, lag: int) -> Reals:
    gaps = contrasts[:, lag:] - contrasts[:, :-lag]
    known = np.isfinite(gaps)
    return np.asarray(0.5 * (np.where(known, gaps, 0.0) ** 2).sum(axis=1) / np.maximum(known.sum(axis=1), 1))
