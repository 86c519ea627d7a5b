"""Recorded bodies in, through the door of an opened folder or of a running server; what became of them out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import httpx
from google.protobuf.message import DecodeError
from google.rpc import status_pb2

from collectors import entry
from collectors.decode import check
from collectors.door import BusyError, Door
from collectors.entry import UnsoundBodyError
from collectors.recorded import Body, bodies
from collectors.recorded_kinds import NotLoadedError
from leverwatch.connection import ConnectError
from leverwatch.local import Local
from leverwatch.remote import Remote
from queries import files

WAIT_S = 120.0
PAUSE_S = 0.2

Rows = list[dict[str, Any]]
Reader: TypeAlias = Callable[[Path, str], Iterator[Body | NotLoadedError]]
"""A file and its kind, if content does not say it, in; its bodies out."""


class Way(Protocol):
    """A way in."""

    def put(self, body: Body) -> None:
        """Puts one body in. Raises NotLoadedError."""

    def ledger(self) -> Rows:
        """What became of everything that was put in, a row per signal, once it is loaded."""


class Here:
    """Into a folder that no server holds."""

    def __init__(self, connection: Local, sender: str) -> None:
        self._room, self._sender = connection.room, sender
        if self._room.config.store.is_lake:
            where = self._room.config.store.uri
            msg = f"{self._room.folder} follows the lake {where}; what is to go there is sent to its server or a collector: --url"
            raise ConnectError(msg)
        self._door = Door(self._room.spool, time.time_ns, self._room.loader.note, check, waiting=self._room.loader.waiting)

    def put(self, body: Body) -> None:
        """Puts one body in. Raises NotLoadedError."""
        try:
            self._take(body)
        except BusyError:
            self._room.take_in()
            self._take(body)
        if self._room.spool.backlog_bytes > self._room.config.store.limit_backlog_bytes // 2:
            self._room.take_in()

    def ledger(self) -> Rows:
        """What became of everything that was put in, a row per signal."""
        self._room.finish()
        return self._room.store.rows(files.question("ledger"), {"sender": self._sender})

    def _take(self, body: Body) -> None:
        try:
            asyncio.run(self._door.take(body.signal, self._sender, body.content))
        except UnsoundBodyError as error:
            raise NotLoadedError(str(error)) from error


class There:
    """Into a running server, by OTLP over HTTP."""

    def __init__(self, remote: Remote, sender: str) -> None:
        self._remote, self._sender = remote, sender
        self._sent = 0

    def put(self, body: Body) -> None:
        """Puts one body in. Raises NotLoadedError, ConnectError."""
        try:
            self._sent += count(body)
        except UnsoundBodyError as error:
            raise NotLoadedError(str(error)) from error
        response = self._posted(body)
        if not response.is_success:
            self._sent -= count(body)
            msg = f"the server answered {response.status_code}: {_told(response)}"
            if response.status_code in (401, 403):
                needed = "loading needs a token that may send and read, such as one of [access] admin"
                msg = f"{response.request.url}: {_told(response)}; {needed}"
                raise ConnectError(msg)
            raise NotLoadedError(msg)

    def ledger(self) -> Rows:
        """What became of everything that was put in, a row per signal, once the server has loaded it."""
        deadline = time.monotonic() + WAIT_S
        while True:
            rows: Rows = self._remote.ledger(self._sender)
            done = sum(row["received"] - row["pending"] for row in rows if row["signal"] != "evaluations")
            if done >= self._sent or time.monotonic() > deadline:
                return rows
            time.sleep(PAUSE_S)

    def _posted(self, body: Body) -> httpx.Response:
        headers = {
            "content-type": "application/json" if body.signal == "requests" else "application/x-protobuf",
            "x-leverwatch-sender": self._sender,
        }
        deadline = time.monotonic() + WAIT_S
        where = self._remote.find_otlp_http()
        while True:
            try:
                url = f"{where}/v1/{body.signal}"
                response = self._remote.http.post(url, content=body.content, headers=headers, timeout=WAIT_S)
            except httpx.HTTPError as error:
                msg = f"{where}: {error}; is `leverwatch serve` running there?"
                raise ConnectError(msg) from error
            if response.status_code not in (429, 503) or time.monotonic() > deadline:
                return response
            time.sleep(float(response.headers.get("retry-after", PAUSE_S)))


def _told(response: httpx.Response) -> str:
    """What a refusal says: ours as JSON, that of OTLP as a `Status`."""
    try:
        if "protobuf" in response.headers.get("content-type", ""):
            return str(status_pb2.Status.FromString(response.content).message)
        told = response.json()
        return str(told["error"]["message"] if "error" in told else told["message"])
    except (ValueError, KeyError, TypeError, DecodeError):
        return response.reason_phrase


def count(body: Body) -> int:
    """How many items the ledger will count of a body. Raises UnsoundBodyError."""
    if body.signal == "traces":
        checked = check(body.content)
        if not checked.sound:
            msg = f"not a sound trace export ({len(body.content)} bytes)"
            raise UnsoundBodyError(msg, msg)
        return checked.spans
    found = entry.CHECKS[body.signal](body.content)
    return found.items + found.dropped.total()


def put_files(way: Way, paths: list[Path], kind: str = "", read: Reader = bodies) -> Iterator[NotLoadedError]:
    """Puts every file in, as it is read; gives what could not be, as it goes."""
    for path in paths:
        for item in read(path, kind):
            if isinstance(item, NotLoadedError):
                yield item
                continue
            try:
                way.put(item)
            except NotLoadedError as error:
                yield NotLoadedError(f"{path}: {error}")
