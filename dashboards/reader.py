"""What pages ask for numbers: the facade implements it over a store, tests over rows made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import polars as pl

from dashboards.compared import Compared, Comparison


class Reader(Protocol):
    """Reads of one store. Stored units; raises ValueError or KeyError for a question that cannot be asked."""

    def frame(self, sql: str, params: Mapping[str, Any] | None = None) -> pl.DataFrame:
        """The rows of one of our own SELECTs."""
        ...

    def report(
        self,
        *,
        by: Sequence[str] = (),
        metrics: Sequence[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        where: str | None = None,
        source: str = "auto",
    ) -> pl.DataFrame:
        """One row per segment: the keys, `requests`, then each metric with its n, coverage and provenance. `where` is a stranger's text.

        `source` says what answers: requests, cells, or auto.
        """
        ...

    def effects(
        self, lever: str, by: Sequence[str] = (), since: datetime | None = None, until: datetime | None = None, *, total: bool = False
    ) -> pl.DataFrame:
        """One row per segment and metric: the lever's newest effect, as columns of `effects`; by keys or in total, standardized."""
        ...

    def break_even(self, lever: str, by: Sequence[str] = ()) -> pl.DataFrame:
        """One row per segment and key: where the lever stops paying, as columns of `break_even`; behind it the one that went stale."""
        ...

    def budgets(self, lever: str, segment: str, until: datetime | None = None) -> list[dict[str, Any]]:
        """Per policy of a lever its budget ledger in a segment: `policy`, `until`, `rows` and what they say (`said`)."""
        ...

    def debt(self, since: datetime | None = None, until: datetime | None = None) -> pl.DataFrame:
        """One row per stream that went on while it stood recommended off: for how long, on what, and the seconds lost."""
        ...

    def compare(self, asked: Comparison, wait_s: float) -> Compared:
        """What tells two sets of requests apart, as far as it is known after `wait_s` at most: columns of `pipeline.explain`."""
        ...
