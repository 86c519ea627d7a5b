"""What can be asked of a store, here or behind a server. Commands and notebooks ask through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import polars as pl

from alerts.backtest_told import Backtest
from leverwatch.lever_questions import CHANGE, GAIN_ON, METRIC, WITHIN_HOURS
from leverwatch.notice_desk import Notices
from queries.explain import LIMIT_KEYS
from queries.results import SqlResult


class ConnectError(ConnectionError):
    """There is nothing to connect to, or the server refuses; says which and why."""


class Connection(Protocol):
    """A store to ask, here or behind a server."""

    def ask(self, sql: str, params: Mapping[str, Any] | None = None, limit_rows: int | None = None) -> SqlResult:
        """The answer to one read-only statement, with its types and whether it was cut.

        Raises:
            SqlError: it was refused, is wrong, or was stopped at a limit.
        """
        ...

    def sql(self, sql: str, params: Mapping[str, Any] | None = None) -> pl.DataFrame:
        """The rows of one read-only statement. Raises as `ask`."""
        return self.ask(sql, params).frame()

    def report(
        self,
        by: str | Sequence[str] = (),
        metrics: str | Sequence[str] | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        where: str | None = None,
        source: str = "auto",
    ) -> pl.DataFrame:
        """One row per segment: keys, requests, then each metric's value, n, coverage and provenance."""
        ...

    def effects(
        self,
        lever: str,
        by: str | Sequence[str] = (),
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        *,
        total: bool = False,
    ) -> pl.DataFrame:
        """One row per segment and metric: the newest effect of a lever, and which are `believed` together.

        With keys `by`, or in `total`, it is standardized over the judging segments beneath, over the last 24 blocks or a period.
        """
        ...

    def break_even(self, lever: str, by: Sequence[str] = ()) -> pl.DataFrame:
        """One row per segment and key: up to where a lever pays and from where it loses; behind it what it said before that went stale."""
        ...

    def holdout(
        self, lever: str, change: float = CHANGE, within_hours: float = WITHIN_HOURS, by: str | Sequence[str] = (), metric: str = METRIC
    ) -> pl.DataFrame:
        """One row per segment, or group of keys `by`, and one for all traffic: the smallest control share that finds a change in time."""
        ...

    def widening(self, lever: str, gain_on: float = GAIN_ON) -> pl.DataFrame:
        """One row per segment: whether the lever may be advised for more of its traffic, and what is missing, in numbers."""
        ...

    def debt(self, since: str | datetime | None = None, until: str | datetime | None = None) -> pl.DataFrame:
        """One row per policy and segment: what was recommended off in a period (default: a week) and went on, and the loss."""
        ...

    def revalidations(self, lever: str | None = None, *, everything: bool = False) -> pl.DataFrame:
        """One row per policy that is to be judged again since another lever was set otherwise; with `everything` also those that were."""
        ...

    def calibrate(
        self, lever: str | None = None, since: str | None = None, splits: int | None = None, *, apply: bool = False
    ) -> pl.DataFrame:
        """One row per lever, metric and block length: by how much its scale is to be widened; with `apply` it is from the next block on."""
        ...

    def explain(
        self,
        a: str,
        b: str | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        where: str | None = None,
        by: str | Sequence[str] = (),
        limit: int = LIMIT_KEYS,
    ) -> pl.DataFrame:
        """One row per key: what tells two sets of requests apart, the key that does so best first; without `b`, `a` from the rest.

        A set is a condition over columns of `requests`, or `slow`, `slow:ttft_s`, `treated:speculation` and the like.
        """
        ...

    def backtest(
        self, policies: str | Path | Sequence[str | Path], since: str | datetime | None = None, until: str | datetime | None = None
    ) -> Backtest:
        """What policies (files, or names of shipped ones) would have said of the stored history; nothing is written.

        Raises:
            PolicyError: a policy cannot be used.
        """
        ...

    def policies(self) -> list[dict[str, Any]]:
        """What is judged by: one object a policy, with its `triggers`, its `text` and where that is `from`."""
        ...

    def notices(self) -> Notices:
        """Silences and deliveries."""
        ...

    def doctor(self, since: str | None = None) -> dict[str, Any]:
        """What can and cannot be known of each replica from `since` on; `status` as the command's.

        Without `since` it is the last hour, or its newest million requests.
        """
        ...

    def chart(
        self,
        name: str,
        *,
        lever: str = "speculation",
        segment: Mapping[str, str] | str | None = None,
        metric: str | None = None,
        by: str | None = None,
        since: str | datetime = "24h",
        until: str | datetime | None = None,
    ) -> Any:
        """An Altair chart by its name (`charts()` lists them), interactive and to be restyled, with the numbers of the pages.

        A segment is its keys, `{"model": "m"}`, or their JSON text; without `until` the period ends at the newest data.

        Raises:
            UnknownChartError, UnknownMetricError: there is none of that name.
            NothingToDrawError: there are no numbers to draw, and of what.
        """
        from leverwatch import notebook_charts  # here, since it loads Altair: the commands need none

        asked = {"lever": lever, "segment": segment, "metric": metric, "by": by, "since": since, "until": until}
        return notebook_charts.chart(self, name, asked)

    def charts(self) -> pl.DataFrame:
        """One row per chart: its name, what it shows, and what it takes beside `since` and `until`."""
        from leverwatch import notebook_charts

        return notebook_charts.listed()

    def close(self) -> None:
        """Lets it go."""
        ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def names(asked: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Names as a tuple: a text is split at its commas; None where none is named."""
    listed = asked.split(",") if isinstance(asked, str) else asked or ()
    return tuple(name.strip() for name in listed if name.strip()) or None
