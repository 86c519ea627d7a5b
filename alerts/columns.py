"""The effects of one lever at one block's end as arrays: a frame in; for each metric each segment's row, and its columns, out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from alerts.effects import NULLS, Effect
from alerts.soundness import LARGEST, NUMBERS

Reals = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


class Columns:
    """Rows of effects, ordered by segment, of which each segment has one a metric at most."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        runs = frame["segment"].rle_id().to_numpy().astype(np.int64)
        self.segments: list[str] = frame["segment"].gather(np.flatnonzero(np.diff(runs, prepend=-1))).to_list()
        self._runs = runs
        self._ends = np.searchsorted(runs, np.arange(len(self.segments) + 1))
        names = frame["metric"].unique().sort()
        self._names = {name: number for number, name in enumerate(names.to_list())}
        self._metrics = frame["metric"].cast(pl.Enum(names)).to_physical().to_numpy()
        self._reals: dict[str, Reals] = {}
        self._places: dict[str, Places] = {}

    def places(self, metric: str) -> Places:
        """The row of each segment for a metric, -1 where it has none."""
        if metric not in self._places:
            rows = np.flatnonzero(self._metrics == self._names.get(metric, -1))
            found = np.full(len(self.segments), -1, dtype=np.int64)
            found[self._runs[rows]] = rows
            self._places[metric] = found
        return self._places[metric]

    def at(self, column: str, metric: str) -> Reals:
        """A column of numbers or truths for each segment; NaN where there is none."""
        if column not in self._reals:
            self._reals[column] = self.frame[column].cast(pl.Float64).fill_null(np.nan).to_numpy()
        return self._taken(self._reals[column], metric)

    def is_in(self, column: str, words: Sequence[str], metric: str) -> Truths:
        """Whether a column of words has one of these, for each segment."""
        key = f"{column} in {','.join(words)}"
        if key not in self._reals:
            self._reals[key] = self.frame[column].is_in(words).fill_null(value=False).cast(pl.Float64).to_numpy()
        return self._taken(self._reals[key], metric) > 0

    def evidence(self, side: str, metric: str) -> Reals:
        """(segments, NULLS): the logarithms of M of `evidence_below` or `evidence_above`; NaN where there is none."""
        found = np.full((len(self.segments), len(NULLS)), np.nan)
        having = np.flatnonzero(self.places(metric) >= 0)
        lists = self.frame[f"evidence_{side}"][self.places(metric)[having]]
        is_whole = (lists.list.len() == len(NULLS)).fill_null(value=False)
        logs = lists.filter(is_whole).explode().cast(pl.Float64).fill_null(np.nan).to_numpy()
        found[having[is_whole.to_numpy()]] = logs.reshape(-1, len(NULLS))
        return found

    def unsound(self) -> Truths:
        """Whether any number of a segment is none that can be judged; see `alerts/soundness.py`."""
        found = np.zeros(len(self.segments), dtype=np.bool_)
        rows = self.frame.select(pl.any_horizontal(~(pl.col(NUMBERS).abs() < LARGEST)).fill_null(value=False).arg_true()).to_series()
        found[self._runs[rows.to_numpy()]] = True
        return found

    def has_evidence(self, metric: str) -> Truths:
        """Whether evidence is kept of a metric, for each segment."""
        lists = [self.frame[f"evidence_{side}"].is_not_null().to_numpy() for side in ("below", "above")]
        places = self.places(metric)
        is_kept: Truths = (places >= 0) & (lists[0] | lists[1])[np.maximum(places, 0)]
        return is_kept

    def premise(self, metric: str, threshold: float, *, above: bool) -> Reals:
        """The logarithm of M that a premise lies above, or below, a threshold, for each segment; NaN where there is none."""
        places = self.places(metric)
        told = self.frame["premise_evidence"].gather(np.maximum(places, 0))
        is_it = (pl.element().struct["threshold"] == threshold) & (pl.element().struct["is_above"] == above)
        found = told.list.eval(pl.element().struct["log_m"].filter(is_it)).list.max().cast(pl.Float64).fill_null(np.nan).to_numpy().copy()
        found[places < 0] = np.nan
        return found

    def effects(self, place: int) -> dict[str, Effect]:
        """The effects of one segment, by metric."""
        start, end = int(self._ends[place]), int(self._ends[place + 1])
        return {row[3]: Effect(*row[3:]) for row in self.frame.slice(start, end - start).rows()}

    def rows(self, metric: str, places: Places, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """These columns of a metric's rows, one row for each of the segments that have one."""
        return self.frame.select(columns)[self.places(metric)[places]].rows()

    def _taken(self, column: Reals, metric: str) -> Reals:
        places = self.places(metric)
        return np.where(places < 0, np.nan, column[np.maximum(places, 0)])


class Late(Mapping[str, Effect]):
    """The effects of one segment, read when they are first asked for: of most nobody does."""

    __slots__ = ("_columns", "_place", "_read")

    def __init__(self, columns: Columns, place: int) -> None:
        self._columns, self._place = columns, place
        self._read: dict[str, Effect] | None = None

    def __getitem__(self, metric: str) -> Effect:
        return self._effects()[metric]

    def __iter__(self) -> Iterator[str]:
        return iter(self._effects())

    def __len__(self) -> int:
        return len(self._effects())

    def _effects(self) -> dict[str, Effect]:
        if self._read is None:
            self._read = self._columns.effects(self._place)
        return self._read
