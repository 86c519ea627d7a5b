"""A data folder that no server holds, opened here and asked like a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from alerts import revalidation
from alerts.backtest_told import Backtest
from alerts.debt import debt
from leverwatch import backtesting, lever_holdout, lever_widening
from leverwatch.config import read
from leverwatch.connection import Connection, names
from leverwatch.doctor import diagnose
from leverwatch.engine_room import EngineRoom
from leverwatch.explaining import explain
from leverwatch.lever_calibration import calibrate
from leverwatch.lever_questions import CHANGE, GAIN_ON, METRIC, WITHIN_HOURS
from leverwatch.notice_desk_local import LocalNotices
from leverwatch.policy_rows import policy_row
from queries import report
from queries.explain import LIMIT_KEYS
from queries.results import SqlResult


class Local(Connection):
    """A data folder that no server holds, opened here."""

    def __init__(self, room: EngineRoom) -> None:
        self.room = room

    @classmethod
    def open(cls, folder: Path) -> Local:
        """Opens a folder with its own configuration. Raises StoreError, ConfigError."""
        return cls(EngineRoom(folder, read(None, folder)))

    def ask(self, sql: str, params: Mapping[str, Any] | None = None, limit_rows: int | None = None) -> SqlResult:
        return self.room.sandbox.run(sql, params, limit_rows)

    def report(
        self,
        by: str | Sequence[str] = (),
        metrics: str | Sequence[str] | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        where: str | None = None,
        source: str = "auto",
    ) -> pl.DataFrame:
        period = {"since": _moment(since), "until": _moment(until)}
        return self.room.report(by=names(by) or (), metrics=names(metrics), where=where, source=source, **period)

    def effects(
        self,
        lever: str,
        by: str | Sequence[str] = (),
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        *,
        total: bool = False,
    ) -> pl.DataFrame:
        return self.room.effects(lever, names(by) or (), _moment(since), _moment(until), total=total)

    def break_even(self, lever: str, by: Sequence[str] = ()) -> pl.DataFrame:
        return self.room.break_even(lever, by)

    def holdout(
        self, lever: str, change: float = CHANGE, within_hours: float = WITHIN_HOURS, by: str | Sequence[str] = (), metric: str = METRIC
    ) -> pl.DataFrame:
        return lever_holdout.holdout(self.room.store, lever, change, within_hours, names(by) or (), metric)

    def widening(self, lever: str, gain_on: float = GAIN_ON) -> pl.DataFrame:
        return lever_widening.widening(self.room.store, lever, gain_on)

    def debt(self, since: str | datetime | None = None, until: str | datetime | None = None) -> pl.DataFrame:
        return debt(self.room.store, _moment(since), _moment(until))

    def revalidations(self, lever: str | None = None, *, everything: bool = False) -> pl.DataFrame:
        return revalidation.listed(self.room.store, lever, everything=everything)

    def calibrate(
        self, lever: str | None = None, since: str | None = None, splits: int | None = None, *, apply: bool = False
    ) -> pl.DataFrame:
        return calibrate(self.room.store, lever, since, splits, self.room.clock(), apply=apply)

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
        period = {"since": _moment(since), "until": _moment(until)}
        return explain(self.room, a, b, by=names(by) or (), where=where, limit=limit, **period)

    def backtest(
        self, policies: str | Path | Sequence[str | Path], since: str | datetime | None = None, until: str | datetime | None = None
    ) -> Backtest:
        return backtesting.tried(self.room.store, backtesting.texts(policies), since, until, self.room.clock())

    def policies(self) -> list[dict[str, Any]]:
        return [{**policy_row(source.policy, source.origin), "text": source.text} for source in self.room.sources]

    def notices(self) -> LocalNotices:
        return LocalNotices(self.room.store, self.room.clock, self.room.config.receivers)

    def doctor(self, since: str | None = None) -> dict[str, Any]:
        return diagnose(self.room, since)

    def close(self) -> None:
        self.room.close()


def _moment(when: str | datetime | None) -> datetime | None:
    return report.moment(when, datetime.now(UTC)) if isinstance(when, str) else when
