"""A running server, asked over HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
import polars as pl

from alerts.backtest_told import Backtest
from leverwatch import backtesting, unreachable
from leverwatch.connection import ConnectError, Connection, names
from leverwatch.credentials import Credentials
from leverwatch.lever_questions import CHANGE, GAIN_ON, METRIC, WITHIN_HOURS
from leverwatch.notice_desk import RemoteNotices
from pipeline.segments import canonical
from queries.explain import LIMIT_KEYS
from queries.results import COLUMNS_HEADER, SqlResult
from queries.sandbox import SqlError

TIMEOUT_S = 120.0
CALIBRATION_TIMEOUT_S = 900.0
BACKTEST_TIMEOUT_S = 900.0


class Remote(Connection):
    """A running server, asked over HTTP."""

    def __init__(self, url: str, otlp_http: str | None = None, credentials: Credentials | None = None) -> None:
        self.url, self.otlp_http = url.rstrip("/"), otlp_http
        self.http = httpx.Client(base_url=self.url, timeout=TIMEOUT_S, **(credentials or Credentials()).client())

    def ask(self, sql: str, params: Mapping[str, Any] | None = None, limit_rows: int | None = None) -> SqlResult:
        sent = {name: _text(value) for name, value in (params or {}).items()}
        asked = {"sql": sql, "params": sent, "format": "arrow"} | ({"limit": limit_rows} if limit_rows else {})
        return SqlResult.from_arrow(self._asked("POST", "/api/sql", json=asked).content)

    def report(
        self,
        by: str | Sequence[str] = (),
        metrics: str | Sequence[str] | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        where: str | None = None,
        source: str = "auto",
    ) -> pl.DataFrame:
        asked = {
            "by": ",".join(names(by) or ()),
            "metrics": ",".join(names(metrics) or ()),
            "since": _text(since),
            "until": _text(until),
            "where": where,
            "from": source,
        }
        return _frame(self._asked("GET", "/api/report", params={key: value for key, value in asked.items() if value}))

    def effects(
        self,
        lever: str,
        by: str | Sequence[str] = (),
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        *,
        total: bool = False,
    ) -> pl.DataFrame:
        more = {"since": _text(since), "until": _text(until), "total": "true" if total else None}
        return self._of_lever("/api/effects", lever, names(by) or (), more)

    def break_even(self, lever: str, by: Sequence[str] = ()) -> pl.DataFrame:
        return self._of_lever("/api/break-even", lever, by)

    def holdout(
        self, lever: str, change: float = CHANGE, within_hours: float = WITHIN_HOURS, by: str | Sequence[str] = (), metric: str = METRIC
    ) -> pl.DataFrame:
        more = {"change": change, "within_hours": within_hours, "metric": metric}
        return self._of_lever("/api/holdout", lever, names(by) or (), more)

    def widening(self, lever: str, gain_on: float = GAIN_ON) -> pl.DataFrame:
        return self._of_lever("/api/widening", lever, (), {"gain_on": gain_on})

    def debt(self, since: str | datetime | None = None, until: str | datetime | None = None) -> pl.DataFrame:
        asked = {"since": _text(since), "until": _text(until)}
        return _frame(self._asked("GET", "/api/debt", params={name: value for name, value in asked.items() if value}))

    def revalidations(self, lever: str | None = None, *, everything: bool = False) -> pl.DataFrame:
        asked = {"lever": lever, "all": "true" if everything else None}
        return _frame(self._asked("GET", "/api/revalidations", params={name: value for name, value in asked.items() if value}))

    def calibrate(
        self, lever: str | None = None, since: str | None = None, splits: int | None = None, *, apply: bool = False
    ) -> pl.DataFrame:
        asked = {name: value for name, value in {"lever": lever, "since": since, "splits": splits}.items() if value is not None}
        return _frame(self._asked("POST" if apply else "GET", "/api/calibrations", params=asked, timeout=CALIBRATION_TIMEOUT_S))

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
        asked = {"a": a, "b": b, "since": _text(since), "until": _text(until), "where": where, "by": ",".join(names(by) or ())}
        params = {key: value for key, value in asked.items() if value} | {"limit": limit}
        return _frame(self._asked("GET", "/api/explain", params=params))

    def backtest(
        self, policies: str | Path | Sequence[str | Path], since: str | datetime | None = None, until: str | datetime | None = None
    ) -> Backtest:
        given = backtesting.texts(policies)
        backtesting.parsed(given)
        asked = {"policies": msgspec.to_builtins(given), "since": _text(since), "until": _text(until)}
        return msgspec.json.decode(self._asked("POST", "/api/backtest", json=asked, timeout=BACKTEST_TIMEOUT_S).content, type=Backtest)

    def policies(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._asked("GET", "/api/policies").json()
        return rows

    def notices(self) -> RemoteNotices:
        return RemoteNotices(self._asked)

    def doctor(self, since: str | None = None) -> dict[str, Any]:
        told: dict[str, Any] = self._asked("GET", "/api/doctor", params={"since": since} if since else {}).json()
        return told

    def ledger(self, sender: str) -> list[dict[str, Any]]:
        """What became of what a sender sent, a row per signal. Raises ConnectError."""
        rows: list[dict[str, Any]] = self._asked("GET", "/api/ledger", params={"sender": sender}).json()
        return rows

    def find_otlp_http(self) -> str:
        """Where the server takes OTLP over HTTP: at the host that it is asked at, on the port that it names.

        Raises:
            ConnectError: it does not say, or a token for it would leave TLS.
        """
        if not self.otlp_http:
            told = self._asked("GET", "/api/addresses").json()["otlp_http"]
            asked = urlsplit(self.url)
            if asked.scheme == "https" and told["scheme"] != "https":
                what = f"its port {told['port']} for OTLP over HTTP has no TLS, and nothing is sent without"
                msg = f"{self.url}: {what}; load on its machine, with --data"
                raise ConnectError(msg)
            host = f"[{asked.hostname}]" if asked.hostname and ":" in asked.hostname else asked.hostname
            self.otlp_http = f"{told['scheme']}://{host}:{told['port']}"
        return self.otlp_http

    def close(self) -> None:
        self.http.close()

    def _of_lever(self, path: str, lever: str, by: Sequence[str], more: Mapping[str, object] | None = None) -> pl.DataFrame:
        asked = {"lever": lever, "by": ",".join(by), **(more or {})}
        return _frame(self._asked("GET", path, params={name: value for name, value in asked.items() if value not in (None, "")}))

    def _asked(self, method: str, path: str, **what: Any) -> httpx.Response:
        try:
            response = self.http.request(method, path, **what)
        except httpx.HTTPError as error:
            raise ConnectError(unreachable.said(self.url, error)) from error
        if response.is_success:
            return response
        try:
            said = response.json()["error"]
            if said["code"] in ("unauthenticated", "forbidden"):
                msg = f"{self.url}: {said['message']}; --token-file or $LEVERWATCH_TOKEN takes one"
                raise ConnectError(msg)
            refusal = SqlError(said["message"], said["code"], said.get("hint") or "")
        except (ValueError, KeyError, TypeError) as error:
            msg = f"{self.url}{path} answered {response.status_code}"
            raise ConnectError(msg) from error
        raise refusal


def _frame(response: httpx.Response) -> pl.DataFrame:
    """The rows of an answer as a folder gives them: a segment is text, and an answer without rows has its columns all the same."""
    rows = response.json()
    if not rows:
        return pl.DataFrame(schema=json.loads(response.headers.get(COLUMNS_HEADER, "[]")))
    if isinstance(rows[0].get("segment"), dict):
        rows = [row | {"segment": canonical(row["segment"])} for row in rows]
    return pl.DataFrame(rows, infer_schema_length=None)


def _text(value: Any) -> Any:
    """A moment or a day as its ISO text, since JSON has none; anything else as it is."""
    return value.isoformat() if isinstance(value, date) else value
