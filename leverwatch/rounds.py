"""What was received in, everything that is made of it out: the jobs of one data folder in their order, one round after the other."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import alerts.follow_up
import alerts.run
from alerts.policy import Policy
from collectors.load import Loader
from collectors.spool import Spool
from leverwatch import lever_widening
from leverwatch.config import Config
from leverwatch.holdout_settings import stated
from leverwatch.housekeeping import Housekeeping
from leverwatch.switchback_settings import ScheduleFile, watched
from pipeline import fresh, imported, jobs, sampling, settle
from pipeline.recent import Recent
from pipeline.uncontrolled_job import Configured
from queries import cells_rolled, merging, sealing
from queries.parts import SEALED
from queries.store import Store, Transaction

CAUGHT_UP = timedelta(minutes=15)
QUIET_S = 10.0
SETTLE_FOR_S = 2.0  # in a round: at the end of a block several parts are divided
SEAL_EVERY_ROUNDS = 20
IDLE_S = 7200.0  # where nothing has arrived for so long, the last hours are closed too: retention drops what is sealed


class Rounds:
    """The jobs of one data folder, and what they remember from round to round."""

    def __init__(
        self,
        store: Store,
        loader: Loader,
        spool: Spool,
        house: Housekeeping,
        config: Config,
        policies: Sequence[Policy],
        measured: settle.Measure,
        clock: Callable[[], datetime],
    ) -> None:
        self.store, self.loader, self.spool, self.house = store, loader, spool, house
        self.config, self.policies, self.measured, self.clock = config, policies, measured, clock
        self.edges = config.segments.edges()
        self.recent = Recent()
        self.watched = watched(policies)
        self.schedule = ScheduleFile(Path(config.switchback.file) if config.switchback.file else None)
        self.base_url = config.alerts.base_url
        self.is_server = False  # else another configuration than the server's may be read, which lacks policies of it
        self._last_arrival = time.monotonic()
        self._rounds_unsealed = 0
        self._mark: datetime | None = None
        self._mark_since_s = time.monotonic()

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
        while self._settle_by(settle.NEVER):
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

    def note_arrival(self) -> None:
        """Something came just now."""
        self._last_arrival = time.monotonic()

    def _load(self) -> int:
        loaded = self.loader.load_next(self.spool)
        if loaded:
            self.note_arrival()
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
        quiet_s = 0.0 if self.spool.backlog_bytes else now_s - self._mark_since_s
        cutoff, done = settle.cutoff(mark, timedelta(seconds=quiet_s)), 0
        while taken := self._settle_by(cutoff):
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
