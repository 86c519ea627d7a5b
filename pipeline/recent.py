"""Fresh batches of spans in, whole traces out, as far as memory reaches: what was just loaded need not be read back from the store."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

LIMIT_SPANS = 60_000


class FreshSpans(Protocol):
    """A loaded batch (`collectors.fresh.Fresh`)."""

    @property
    def parts(self) -> Sequence[str]: ...
    @property
    def spans(self) -> pa.Table: ...
    @property
    def traces(self) -> Hashes: ...
    @property
    def is_known(self) -> Mask: ...


@dataclass(frozen=True, slots=True)
class Split:
    """The spans of a batch's traces, by what is known of them.

    `new` are of traces that nothing came of before; `again` are all spans of traces whose earlier ones are in memory too; `elsewhere`
    are the batch's spans of traces that have others in the store.
    """

    new: pl.DataFrame
    again: pl.DataFrame
    elsewhere: pl.DataFrame


class Recent:
    """The newest batches, whole: at most `limit_spans` of them but for the last."""

    def __init__(self, limit_spans: int = LIMIT_SPANS) -> None:
        self._limit_spans = limit_spans
        self._batches: deque[FreshSpans] = deque()

    def take(self, batch: FreshSpans) -> Split:
        """Puts a batch with those before it, and gives its traces as whole as memory has them."""
        spans = pl.DataFrame(batch.spans)
        if not batch.is_known.any():
            self._keep(batch)
            return Split(spans, spans.clear(), spans.clear())
        known = np.unique(batch.traces[batch.is_known])
        before = [(held, np.isin(held.traces, known)) for held in self._batches]
        begun = self._begun_here(known, before)
        again = np.isin(batch.traces, begun)
        elsewhere = np.isin(batch.traces, known) & ~again
        earlier = [pl.DataFrame(held.spans.filter(pa.array(mask & np.isin(held.traces, begun)))) for held, mask in before if mask.any()]
        self._keep(batch)
        return Split(
            spans.filter(pl.Series(~(again | elsewhere))),
            pl.concat([*earlier, spans.filter(pl.Series(again))], how="vertical_relaxed"),
            spans.filter(pl.Series(elsewhere)),
        )

    @staticmethod
    def _begun_here(known: Hashes, before: list[tuple[FreshSpans, Mask]]) -> Hashes:
        """The known traces whose first span is in memory: the first batch that has one says that nothing came before."""
        begun, left = [], known
        for held, mask in before:
            found = np.unique(held.traces[mask])
            older = np.unique(held.traces[mask & held.is_known])
            begun.append(np.setdiff1d(np.intersect1d(left, found), older))
            left = np.setdiff1d(left, found)
        return np.concatenate(begun) if begun else known[:0]

    def _keep(self, batch: FreshSpans) -> None:
        self._batches.append(batch)
        while len(self._batches) > 1 and sum(len(held.traces) for held in self._batches) > self._limit_spans:
            self._batches.popleft()
