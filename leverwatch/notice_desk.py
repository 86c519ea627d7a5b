"""What can be asked and done about notices: silences and deliveries, here or behind a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import quote

import httpx

Row = dict[str, Any]


class Notices(Protocol):
    """Silences and deliveries of a store; rows as the API answers them."""

    def silences(self, state: str | None = None, limit: int = 100) -> list[Row]:
        """Silences, newest first; of a state (`pending`, `active`, `ended`) or all."""
        ...

    def silence(self, asked: Mapping[str, Any]) -> Row:
        """Begins a silence, asked for as with `POST /api/silences`. Raises ValueError for one that cannot be."""
        ...

    def snooze(self, flip_id: str, asked: Mapping[str, Any]) -> Row:
        """Holds one flip back for `for_s` seconds, by its id or the beginning of it. Raises ValueError where there is none."""
        ...

    def end_silence(self, silence_id: str) -> Row:
        """Ends a silence now, by its id or the beginning of it. Raises ValueError where there is none, or several begin so."""
        ...

    def deliveries(self, receiver: str | None = None, outcome: str | None = None, limit: int = 100) -> list[Row]:
        """Attempts and what waits, newest first; with an outcome, the notices that stand so now."""
        ...

    def replay(self, delivery_id: str) -> Row:
        """Lets a delivery's notice be sent again under its own id. Raises ValueError where there is none of that id."""
        ...

    def replay_all(self, receiver: str) -> Row:
        """Lets everything that was given up for a receiver be sent again: how many, and how many are superseded."""
        ...


class RemoteNotices(Notices):
    """Those of a running server; `ask` takes method, path and what httpx takes."""

    def __init__(self, ask: Callable[..., httpx.Response]) -> None:
        self._ask = ask

    def silences(self, state: str | None = None, limit: int = 100) -> list[Row]:
        return self._rows("/api/silences", {"state": state, "limit": limit})

    def silence(self, asked: Mapping[str, Any]) -> Row:
        return self._row("POST", "/api/silences", json=dict(asked))

    def snooze(self, flip_id: str, asked: Mapping[str, Any]) -> Row:
        return self._row("POST", f"/api/flips/{quote(flip_id, safe='')}/snooze", json=dict(asked))

    def end_silence(self, silence_id: str) -> Row:
        return self._row("DELETE", f"/api/silences/{quote(silence_id, safe='')}")

    def deliveries(self, receiver: str | None = None, outcome: str | None = None, limit: int = 100) -> list[Row]:
        return self._rows("/api/deliveries", {"receiver": receiver, "outcome": outcome, "limit": limit})

    def replay(self, delivery_id: str) -> Row:
        return self._row("POST", f"/api/deliveries/{quote(delivery_id, safe='')}/replay")

    def replay_all(self, receiver: str) -> Row:
        return self._row("POST", f"/api/receivers/{quote(receiver, safe='')}/replay")

    def _row(self, method: str, path: str, **what: Any) -> Row:
        row: Row = self._ask(method, path, **what).json()
        return row

    def _rows(self, path: str, params: Mapping[str, Any]) -> list[Row]:
        rows: list[Row] = self._ask("GET", path, params={name: value for name, value in params.items() if value is not None}).json()
        return rows
