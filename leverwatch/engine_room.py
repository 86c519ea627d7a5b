"""One data folder opened: its spool, jobs and what it can be asked, without any listener. `serve`, `load` and `connect` stand on it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from alerts import debt
from collectors.load import Loader
from collectors.spool import Spool
from dashboards.compared import Compared, Comparison
from dashboards.studio import Studio
from leverwatch import deployment, lever_budgets, lever_effects, opening, policy_sources, report_source, reporting
from leverwatch.comparing import Comparisons
from leverwatch.config import Config
from leverwatch.explaining import compared
from leverwatch.housekeeping import Housekeeping
from leverwatch.rounds import Rounds
from pipeline import fresh, measure, metric_table, settle
from pipeline import metrics as metric_rows
from queries.sandbox import Sandbox, SqlLimits


def utc_now() -> datetime:
    """The wall clock, in UTC."""
    return datetime.now(UTC)


class EngineRoom:
    """Everything that works on one data folder, opened."""

    def __init__(self, folder: Path, config: Config, clock: Callable[[], datetime] = utc_now, sql_behind_s: float = 0.0) -> None:
        self.deployed = deployment.of(config)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder, self.config, self.clock = folder, config, clock
        self.store = opening.opened(folder, config.store.memory_limit, clock())
        self.loader = Loader(self.store, deployed=self.deployed)
        limit = config.store.limit_backlog_bytes
        free = config.retention.min_free_bytes
        self.spool = Spool(folder / "spool", self.loader.position(), limit_backlog_bytes=limit, limit_free_bytes=free)
        self.house = Housekeeping(self.store, config.retention)
        self.loader.count_waiting(self.spool)
        asked = config.sql
        limits = SqlLimits(asked.limit_rows, wall_s=asked.limit_s, most_wall_s=asked.most_s, memory_bytes=asked.limit_bytes)
        self.sandbox = Sandbox(self.store, replace(limits, behind_s=sql_behind_s))
        self.studio = Studio()
        self.slo = metric_rows.Slo(**msgspec.structs.asdict(config.slo))
        self.measured: settle.Measure = functools.partial(
            measure.cells, by_tenant=config.segments.judge_by_tenant, metrics=metric_rows.with_slo(self.slo)
        )
        self.sources = policy_sources.sources(config.alerts.policies)
        self.policies = [source.policy for source in self.sources]
        self.rounds = Rounds(self.store, self.loader, self.spool, self.house, config, self.policies, self.measured, clock)
        self.edges, self.schedule = self.rounds.edges, self.rounds.schedule
        self.taking_snapshot = threading.Lock()
        self.lags: Callable[[], Mapping[tuple[str, str], int]] = dict  # of messages that wait to be read, by (sender, signal)
        metric_table.describe(self.store, metric_rows.with_slo(self.slo))
        if config.links or config.prices:  # else those of the last server stay, whose configuration may lie elsewhere
            deployment.publish(self.store, config)
        fresh.expand_dirty_parts(self.store)
        self._comparisons = Comparisons(lambda asked: compared(self, asked), clock, self.sandbox.runs.stop_all)

    def steps(self) -> tuple[tuple[str, Callable[[], int]], ...]:
        """The jobs in order; see `Rounds.steps`."""
        return self.rounds.steps()

    def work_once(self) -> int:
        """One round of every job; gives how much was done, 0 when nothing waits."""
        return self.rounds.work_once()

    def drain(self, deadline_s: float | None = None) -> bool:
        """Works until nothing waits; gives False where the time ran out first."""
        return self.rounds.drain(deadline_s)

    def finish(self) -> None:
        """Works until nothing waits, and settles what is left: nothing more is to come."""
        self.rounds.finish()

    def take_in(self) -> None:
        """Loads and assembles what waits; see `Rounds.take_in`."""
        self.rounds.take_in()

    def is_caught_up(self) -> bool:
        """Whether what is judged is the present; see `Rounds.is_caught_up`."""
        return self.rounds.is_caught_up()

    def warnings(self) -> dict[str, str]:
        """What is not as it should be and stops nothing, by where."""
        found = {
            "registry": self.deployed.registry.problem if self.deployed.registry is not None else "",
            "switchback": self.schedule.problem,
            "parts": self.house.lost_parts,
        }
        return {name: problem for name, problem in found.items() if problem}

    def frame(self, sql: str, params: Mapping[str, Any] | None = None) -> pl.DataFrame:
        """The rows of one of our own statements."""
        return self.store.frame(sql, params)

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
        """The report, from requests or cells (`leverwatch/report_source.py`); one with a `where` of a stranger's runs in the sandbox.

        Raises:
            ReportError, KeyError, SqlError: what was asked cannot be answered.
        """
        chosen = metric_rows.chosen(tuple(metrics) if metrics is not None else None, self.slo)
        if source == "cells" and (metrics is None or list(metrics) == ["all"]):
            chosen = tuple(metric for metric in chosen if metric_rows.in_cells(metric))
        has_tenant = self.config.segments.judge_by_tenant
        held = report_source.from_cells(self.store, source, chosen, by, since, until, where, has_tenant=has_tenant)
        if held:
            return self.store.frame(held.sql, held.params)
        return reporting.from_requests(self.store, self.sandbox, chosen, by, since, until, where)

    def effects(
        self, lever: str, by: Sequence[str] = (), since: datetime | None = None, until: datetime | None = None, *, total: bool = False
    ) -> pl.DataFrame:
        """A lever's effects, one row per segment and metric; see `lever_effects.effects`."""
        return lever_effects.effects(self.store, lever, by, since, until, total=total)

    def break_even(self, lever: str, by: Sequence[str] = ()) -> pl.DataFrame:
        """Where a lever stops paying; see `lever_effects.break_even`."""
        return lever_effects.break_even(self.store, lever, by)

    def budgets(self, lever: str, segment: str, until: datetime | None = None) -> list[dict[str, Any]]:
        """A lever's budget ledgers in a segment; see `lever_budgets.budgets`."""
        return lever_budgets.budgets(self.store, self.policies, lever, segment, until)

    def debt(self, since: datetime | None = None, until: datetime | None = None) -> pl.DataFrame:
        """What went on while it stood recommended off; see `alerts.debt.debt`."""
        return debt.debt(self.store, since, until)

    def compare(self, asked: Comparison, wait_s: float) -> Compared:
        """What tells two sets apart, as far as it is known after `wait_s`; see `Comparisons.ask`."""
        return self._comparisons.ask(asked, wait_s)

    def close(self) -> None:
        """Lets everything go; what is not loaded stays in the spool."""
        self._comparisons.close()
        self.loader.close()
        self.spool.close()
        self.house.close()
        self.sandbox.close()
        self.studio.close()
        self.store.close()
