"""`leverwatch.connect`: a folder or a server's address in, Polars frames out. Commands and notebooks ask through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import httpx
import polars as pl

from leverwatch import serve_file
from queries.results import SqlResult
from queries.sandbox import SqlError

TIMEOUT_S = 120.0


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
        by: Sequence[str] = (),
        metrics: Sequence[str] | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        where: str | None = None,
    ) -> pl.DataFrame:
        """One row per segment: keys, requests, then each metric's value, n, coverage and provenance."""
        ...

    def effects(self, lever: str, by: Sequence[str] = ()) -> pl.DataFrame:
        """One row per segment and metric: the newest effect of a lever."""
        ...

    def close(self) -> None:
        """Lets it go."""
        ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Remote(Connection):
    """A running server, asked over HTTP."""

    def __init__(self, url: str, otlp_http: str | None = None) -> None:
        self.url, self.otlp_http = url.rstrip("/"), otlp_http
        self.http = httpx.Client(base_url=self.url, timeout=TIMEOUT_S)

    def ask(self, sql: str, params: Mapping[str, Any] | None = None, limit_rows: int | None = None) -> SqlResult:
        asked = {"sql": sql, "params": dict(params or {}), "format": "arrow"} | ({"limit": limit_rows} if limit_rows else {})
        return SqlResult.from_arrow(self._asked("POST", "/api/sql", json=asked).content)

    def report(
        self,
        by: Sequence[str] = (),
        metrics: Sequence[str] | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        where: str | None = None,
    ) -> pl.DataFrame:
        asked = {"by": ",".join(by), "metrics": ",".join(metrics or ()), "since": _text(since), "until": _text(until), "where": where}
        rows = self._asked("GET", "/api/report", params={key: value for key, value in asked.items() if value}).json()
        return pl.DataFrame(rows, infer_schema_length=None)

    def effects(self, lever: str, by: Sequence[str] = ()) -> pl.DataFrame:
        asked = {"lever": lever} | ({"by": ",".join(by)} if by else {})
        return pl.DataFrame(self._asked("GET", "/api/effects", params=asked).json(), infer_schema_length=None)

    def close(self) -> None:
        self.http.close()

    def _asked(self, method: str, path: str, **what: Any) -> httpx.Response:
        try:
            response = self.http.request(method, path, **what)
        except httpx.HTTPError as error:
            msg = f"{self.url}: {error}"
            raise ConnectError(msg) from error
        if response.is_success:
            return response
        try:
            said = response.json()["error"]
            refusal = SqlError(said["message"], said["code"], said.get("hint") or "")
        except (ValueError, KeyError, TypeError) as error:
            msg = f"{self.url}{path} answered {response.status_code}"
            raise ConnectError(msg) from error
        raise refusal


def connect(where: str | Path, *, create: bool = False) -> Connection:
    """A connection to a data folder, through its server where one runs, or to a server's address.

    Raises:
        ConnectError: the folder is not there (and `create` is not asked).
    """
    if isinstance(where, str) and where.startswith(("http://", "https://")):
        return Remote(where)
    folder = Path(where).absolute()
    running = serve_file.live(folder)
    if running:
        return Remote(running.url, running.otlp_http)
    if not create and not (folder / "live.duckdb").exists():
        msg = f"{folder}: no data here; start `leverwatch serve` or `leverwatch load` with this folder first"
        raise ConnectError(msg)
    from leverwatch.local import Local  # here, since it loads the decoder and the jobs: asking a server needs neither

    return Local.open(folder)


def _text(when: str | datetime | None) -> str | None:
    return when.isoformat() if isinstance(when, datetime) else when
