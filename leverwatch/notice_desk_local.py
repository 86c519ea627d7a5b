"""Silences and deliveries of a data folder that no server holds: what is put in here goes out when it is served."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from alerts import dead_letters, outbox, shown, silence_reach, silence_rows, silences
from alerts.levers import unknown
from alerts.receivers import Receiver
from alerts.silences import Silence
from leverwatch.notice_desk import Notices, Row
from queries import files
from queries.store import Store


class NoticeError(ValueError):
    """What was asked about notices is not there, or cannot be; says what is."""


class LocalNotices(Notices):
    """Those of an opened folder."""

    def __init__(self, store: Store, clock: Callable[[], datetime], receivers: Sequence[Receiver]) -> None:
        self._store, self._clock = store, clock
        self._receivers = tuple(receiver.name for receiver in receivers)

    def silences(self, state: str | None = None, limit: int = 100) -> list[Row]:
        now = self._clock()
        rows = (shown.silence(row, now) for row in silence_rows.listed(self._store))
        return [row for row in rows if state in (None, row["state"])][:limit]

    def silence(self, asked: Mapping[str, Any]) -> Row:
        now = self._clock()
        try:
            read = msgspec.convert(dict(asked), silences.Asked)
        except msgspec.ValidationError as error:
            raise NoticeError(str(error)) from error
        return self._added(silences.planned(read, now, self._receivers), now)

    def snooze(self, flip_id: str, asked: Mapping[str, Any]) -> Row:
        now = self._clock()
        try:
            read = msgspec.convert(dict(asked), silences.Snooze)
        except msgspec.ValidationError as error:
            raise NoticeError(str(error)) from error
        return self._added(silences.snoozed(silence_rows.flip_of(self._store, flip_id), read, now), now)

    def end_silence(self, silence_id: str) -> Row:
        now = self._clock()
        return shown.silence(silence_rows.end(self._store, silence_id, now), now)

    def deliveries(self, receiver: str | None = None, outcome: str | None = None, limit: int = 100) -> list[Row]:
        asked = {
            "receiver": receiver,
            "outcome": outcome,
            "limit": limit,
            "flip_id": None,
            "since": None,
            "until": None,
            "now": self._clock(),
        }
        return [shown.shown(row) for row in self._store.rows(files.question("list_deliveries"), asked)]

    def replay(self, delivery_id: str) -> Row:
        row = outbox.replay(self._store, delivery_id, self._clock())
        if row is None:
            msg = f"there is no delivery {delivery_id!r}; `leverwatch deliveries` has them"
            raise NoticeError(msg)
        return shown.shown({**row, "held_until": self._held(row["receiver"])})

    def replay_all(self, receiver: str) -> Row:
        if receiver not in self._receivers:
            raise NoticeError(unknown("receiver", receiver, self._receivers))
        done = dead_letters.replay_all(self._store, receiver, self._clock())
        return shown.shown({"receiver": receiver, **done._asdict(), "held_until": self._held(receiver)})

    def _held(self, receiver: str) -> datetime | None:
        return outbox.held_until(self._store, receiver, self._clock())

    def _added(self, silence: Silence, now: datetime) -> Row:
        told = silence_reach.notes(self._store, silence_rows.add(self._store, silence))
        return {**shown.silence(silence, now), "notes": told}
