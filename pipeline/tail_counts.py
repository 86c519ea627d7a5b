"""One block's histograms and those before it in, how many of each arm's requests exceed control's earlier percentiles out.

The threshold is control's percentile of the last hour, of two hours where an hour has too few, without the block itself. Each block has its
own; what a family then gathers over blocks are counts of exceedances. A failed request exceeds every threshold, whatever time it took.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.evidence_families import ARMS, SUMS
from pipeline.inference import exceedance
from pipeline.measure import REQUESTS
from pipeline.metrics import TAILS
from pipeline.tail_bins import Bins
from pipeline.tail_families import BASES

HOUR_BLOCKS = 12
_CONTROL = ARMS.index("control")

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Offered:
    """Requests, and those that failed, of each pair, arm and block: arrays (pairs, ARMS, blocks), and the pairs' names."""

    names: pl.DataFrame
    requests: Reals
    failed: Reals

    def without_value(self, held: Reals, since: int, until: int) -> Reals:
        """How many failed and have no value of a metric in these blocks, (pairs, ARMS), where `held` have one."""
        asked, failed = (of[:, :, since:until].sum(axis=2) for of in (self.requests, self.failed))
        return np.asarray(np.minimum(failed, np.maximum(asked - held, 0.0)))


@dataclass(frozen=True, slots=True)
class Counts:
    """Of each pair and arm in a block, `n` requests and how many of them count: arrays (pairs, ARMS). `is_told` (pairs,)."""

    metric: str
    n: Reals
    over: Reals
    is_told: Truths


def exceeding(bins: Bins, offered: Offered, base: str, block: int, window: int) -> Iterator[Counts]:
    """The exceedances of a metric's percentiles in one block, told where a threshold is known; `window` blocks before it may be read."""
    upto = bins.running(bins.rows(block, block + 1))
    held, failed = upto[:, :, -1], offered.failed[:, :, block]
    n = held + offered.without_value(held, block, block + 1)
    for name, limit in _thresholds(bins, offered, base, block, window):
        below = np.take_along_axis(upto, np.maximum(limit, 0)[:, None, None], axis=2)[:, :, 0]
        yield Counts(name, n, np.minimum(held - below + failed, n), limit >= 0)


def counted(offered: Offered, block: int) -> Counts:
    """How many requests a block has of both arms: of the thinner one, so that neither has too few."""
    fewest = offered.requests[:, :, block].min(axis=1)
    return Counts(REQUESTS, np.stack([fewest] * len(ARMS), axis=1), np.zeros((len(fewest), len(ARMS))), fewest > 0)


def cells(names: pl.DataFrame, found: Sequence[Counts]) -> pl.DataFrame:
    """Rows of cells: lever, segment, arm, metric and SUMS. Of n requests `over` have the value 1, so sums of squares are these."""
    n, over = (np.stack(of) for of in ([one.n for one in found], [one.over for one in found]))
    told = np.stack([one.is_told for one in found])[:, :, None] & (n > 0)
    metric, pair, arm = np.nonzero(told)
    columns = dict(zip(SUMS, (n[told], over[told], n[told], over[told], n[told], over[told]), strict=True))
    named = names[pair].select("lever", "segment")
    labels = pl.DataFrame({"arm": np.array(ARMS)[arm], "metric": np.array([one.metric for one in found])[metric]})
    return pl.concat([named, labels, pl.DataFrame(columns)], how="horizontal")


def _thresholds(bins: Bins, offered: Offered, base: str, block: int, window: int) -> Iterator[tuple[str, Whole]]:
    """Each percentile's name and the bin of control's, as its place; -1 = too few requests to tell."""
    names = BASES[base]
    limits = [_limits(bins, offered, names, max(0, block - HOUR_BLOCKS), block)]
    if (limits[0] < 0).any():
        longer = _limits(bins, offered, names, max(0, block - window), block)
        limits[0] = np.where(limits[0] < 0, longer, limits[0])
    yield from zip(names, limits[0], strict=True)


def _limits(bins: Bins, offered: Offered, names: Sequence[str], since: int, until: int) -> Whole:
    """The same of some blocks, (names, pairs)."""
    running = bins.running(bins.rows(since, until))
    failed = offered.without_value(running[:, :, -1], since, until)[:, _CONTROL]
    return np.stack([exceedance.limit(running[:, _CONTROL], TAILS[name], failed) for name in names])
