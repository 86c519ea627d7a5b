"""One data folder opened: its spool, loader, jobs and readers, without any listener. `serve`, `load` and `connect` stand on it."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

import alerts.follow_up
import alerts.run
from alerts import debt
from collectors.load import Loader
from collectors.spool import Spool
from dashboards.compared import Compared, Comparison
from leverwatch import deployment, lever_budgets, lever_effects, lever_widening, opening, policy_sources, report_source, reporting
from leverwatch.comparing import Comparisons
from leverwatch.config import Config
from leverwatch.explaining import compared
from leverwatch.holdout_settings import stated
from leverwatch.housekeeping import Housekeeping
from leverwatch.switchback_settings import ScheduleFile, watched
from pipeline import fresh, imported, jobs, measure, metric_table, sampling, settle
from pipeline import metrics as metric_rows
from pipeline.recent import Recent
from pipeline.uncontrolled_job import Configured
from queries import cells_rolled, merging, sealing
from queries.parts import SEALED
from queries.sandbox import Sandbox, SqlLimits
from queries.store import Transaction

CAUGHT_UP = timedelta(minutes=15)
QUIET_S = 10.0
STILL_S = 180.0
SETTLE_FOR_S = 2.0  # in a round: at the end of a block several parts are divided
NEVER = datetime(9000, 1, 1, tzinfo=UTC)
SEAL_EVERY_ROUNDS = 20
IDLE_S = 7200.0  # where nothing has arrived for so long, the last hours are closed too: retention drops what is sealed


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
        self.edges = config.segments.edges()
        self.recent = Recent()
        self.slo = metric_rows.Slo(**msgspec.structs.asdict(config.slo))
        self.measured: settle.Measure = functools.partial(
            measure.cells, by_tenant=config.segments.judge_by_tenant, metrics=metric_rows.with_slo(self.slo)
        )
        self.sources = policy_sources.sources(config.alerts.policies)
        self.policies = [source.policy for source in self.sources]
        self.watched = watched(self.policies)
        self.schedule = ScheduleFile(Path(config.switchback.file) if config.switchback.file else None)
        self.base_url = config.alerts.base_url
        self.is_server = False  # else another configuration than the server's may be read, which lacks policies of it
        self.taking_snapshot = threading.Lock()
        self.lags: Callable[[], Mapping[tuple[str, str], int]] = dict  # of messages that wait to be read, by (sender, signal)
        self._last_arrival = time.monotonic()
        self._rounds_unsealed = 0
        self._mark: datetime | None = None
        self._mark_since_s = time.monotonic()
        metric_table.describe(self.store, metric_rows.with_slo(self.slo))
        if config.links or config.prices:  # else those of the last server stay, whose configuration may lie elsewhere
            deployment.publish(self.store, config)
        fresh.expand_dirty_parts(self.store)
        self._comparisons = Comparisons(lambda asked: compared(self, asked), clock, self.sandbox.runs.stop_all)

    def steps(self) -> tuple[tuple[str, Callable[[], int]], ...]:
        """The jobs in order, each taking what the one before left and giving how much it did."""
        return (
            ("load", self._load),
            ("assemble", self._assemble),
            ("sample", lambda: sampling.sample_next(self.store, jobs.watermark(self.store))),
            ("settle", self._settle),
            ("compare", self._compare),
            ("roll", self._roll),
            *self.judging(),
            ("seal", self._seal),
            ("merge", self._merge),
            ("retain", lambda: self.house.step(self.clock(), jobs.watermark(self.store))),
        )

    def judging(self) -> tuple[tuple[str, Callable[[], int]], ...]:
        """The jobs that follow once blocks are compared."""
        return (
            ("note settings", lambda: alerts.follow_up.before_judging(self.store, self.policies)),
            ("judge", self._judge),
            ("follow up", lambda: alerts.follow_up.after_judging(self.store, self.policies)),
        )

    def work_once(self) -> int:
        """One round of every job; gives how much was done, 0 when nothing waits."""
        return sum(step() for _, step in self.steps())

    def drain(self, deadline_s: float | None = None) -> bool:
        """Works until nothing waits; gives False where the time ran out first."""
        started = time.monotonic()
        while self.work_once():
            if deadline_s is not None and time.monotonic() - started > deadline_s:
                return False
        return True

    def finish(self) -> None:
        """Works until nothing waits, and settles what is left: nothing more is to come."""
        self.take_in()
        self.drain()
        while self._settle_by(NEVER):
            pass

    def take_in(self) -> None:
        """Loads and assembles what waits, and settles nothing: of the same time more may follow, such as samples behind all spans."""
        while self._load() + self._assemble():
            pass

    def is_caught_up(self) -> bool:
        """Whether what is judged is the present: the watermark is near the wall clock, or nothing arrives any more."""
        mark = jobs.watermark(self.store)
        if mark is None:
            return False
        quiet = time.monotonic() - self._last_arrival > QUIET_S and not self.spool.backlog_bytes
        return quiet or self.clock() - mark < CAUGHT_UP

    def has_live_sender(self) -> bool:
        """Whether anything arrived in the last minute."""
        return time.monotonic() - self._last_arrival < jobs.IDLE_SENDER_S

    def _load(self) -> int:
        loaded = self.loader.load_next(self.spool)
        if loaded:
            self._last_arrival = time.monotonic()
        return loaded

    def _assemble(self) -> int:
        """Assembles what was just loaded from memory, and what else waits from the store."""
        taken = 0
        while self.loader.fresh:
            taken += fresh.assemble_fresh(self.store, self.recent, self.loader.fresh.popleft(), self.edges, self._retract)
        return taken + imported.import_next(self.store, self.edges) + jobs.assemble_next(self.store, self.edges, self._retract)

    def _retract(self, transaction: Transaction) -> None:
        settle.retract(self.store, transaction, self.measured, self.clock())

    def _settle(self) -> int:
        """Settles what event time has passed, and everything once the watermark stands still: nothing more seems to come."""
        mark, now_s = jobs.watermark(self.store), time.monotonic()
        if mark != self._mark:
            self._mark, self._mark_since_s = mark, now_s
        if mark is None:
            return 0
        is_still = now_s - self._mark_since_s > STILL_S and not self.spool.backlog_bytes
        done = 0
        while taken := self._settle_by(NEVER if is_still else mark - settle.LAG):
            done += taken
            if time.monotonic() - now_s > SETTLE_FOR_S:
                break
        return done

    def _settle_by(self, cutoff: datetime) -> int:
        return settle.settle_next(self.store, self.edges, self.measured, cutoff, self.clock())

    def _compare(self) -> int:
        configured = Configured(self.schedule.current(), self.watched)
        late, holdouts = not self.spool.backlog_bytes, stated(self.config.holdouts)
        return jobs.compare_next(self.store, late=late, edges=self.edges, configured=configured, holdouts=holdouts)

    def _roll(self) -> int:
        mark = jobs.watermark(self.store)
        return cells_rolled.roll_next(self.store, mark - settle.LAG) if mark else 0

    def _judge(self) -> int:
        live = self.is_caught_up() and self.has_live_sender()
        mark = jobs.watermark(self.store)
        since = jobs.unjudged_since(self.store)
        before = since - jobs.BLOCK if since else None
        widening = functools.partial(lever_widening.ready, self.store) if live else None
        done = alerts.run.run(
            self.store,
            self.policies,
            self.clock(),
            mark,
            caught_up=live,
            since=before,
            base_url=self.base_url,
            widening=widening,
            closes=self.is_server,
        )
        if since:
            jobs.mark_judged(self.store)
        return done

    def _seal(self) -> int:
        """Seals an hour when nothing waits to be loaded, and now and then when something always does."""
        self._rounds_unsealed += 1
        if self.spool.backlog_bytes and self._rounds_unsealed < SEAL_EVERY_ROUNDS:
            return 0
        self._rounds_unsealed = 0
        mark = jobs.watermark(self.store)
        if mark and time.monotonic() - self._last_arrival > IDLE_S:
            mark += timedelta(seconds=2 * IDLE_S)
        return sealing.seal_next(self.store, mark) if mark else 0

    def _merge(self) -> int:
        """Merges small parts when nothing waits to be loaded, and when they are so many that every load is slowed by them."""
        pace, mark = merging.IN_A_HURRY if self.spool.backlog_bytes else merging.AT_REST, jobs.watermark(self.store)
        closed = mark - sealing.SEAL_AFTER if mark else None
        return sum(merging.merge_next(self.store, relation, pace, closed) for relation in SEALED)

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
        self.store.close()
