"""Frames, results and errors in, HTTP answers out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import polars as pl
from fastapi import HTTPException, Request, Response

from queries import arrow_values
from queries.results import COLUMNS_HEADER, SqlResult

_PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_DATA_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
_STATUS = {"refused": 403, "time_limit": 504, "memory_limit": 422, "too_large": 413, "busy": 429, "cancelled": 409, "crashed": 422}
_MEDIA = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.stream",
    "table": "text/plain; charset=utf-8",
}


async def body(request: Request, most_bytes: int) -> bytes:
    """A request's body.

    Raises:
        HTTPException: 413, it is longer than what is taken.
    """
    read = bytearray()
    async for chunk in request.stream():
        read += chunk
        if len(read) > most_bytes:
            raise HTTPException(413, f"the body is longer than {most_bytes:,} bytes")
    return bytes(read)


def page(html: str, status: int = 200) -> Response:
    """A page that may load only from its own server and can't be framed."""
    return Response(html, status, _PAGE_HEADERS, "text/html; charset=utf-8")


def asset(body: bytes, media: str) -> Response:
    """A file of ours: asked for again each time, so that an upgrade shows at once."""
    return Response(body, 200, {**_DATA_HEADERS, "Cache-Control": "no-cache"}, media)


def download(body: bytes, media: str, name: str) -> Response:
    """A file to keep under a name; where a browser shows it all the same, it can run nothing."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    said = {**_DATA_HEADERS, "Content-Security-Policy": policy, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(body, 200, said, media)


def rows(frame: pl.DataFrame) -> Response:
    """One JSON object per row; `segment` as an object. An answer without rows names its columns in a header."""
    table = frame.to_arrow()
    columns = {name: arrow_values.plain(table.column(name).combine_chunks()) for name in table.column_names}
    if "segment" in columns:
        columns["segment"] = [None if text is None else json.loads(text) for text in columns["segment"]]
    listed = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return _json(listed, headers=None if listed else {COLUMNS_HEADER: json.dumps(table.column_names)})


def answer(result: SqlResult, kind: str) -> Response:
    """The answer to ad-hoc SQL in one of `queries.results.FORMATS`."""
    if kind == "json":
        return _json(result.json_able())
    make: dict[str, Callable[[], str | bytes]] = {
        "csv": result.csv,
        "parquet": result.parquet,
        "arrow": result.arrow,
        "table": lambda: result.text() + "\n",
    }
    said = {"X-Row-Count": str(result.row_count), "X-Truncated": str(result.truncated).lower()}
    return Response(make[kind](), 200, {**_DATA_HEADERS, **said}, _MEDIA[kind])


def json_able(value: Any, status: int = 200) -> Response:
    """A value as JSON."""
    return _json(value, status)


def error(code: str, message: str, hint: str = "", status: int | None = None, retry_after_s: int | None = None) -> Response:
    """`{error: {code, message, hint}}`; 504 for the time limit, another 4xx for the rest."""
    said = None if retry_after_s is None else {"Retry-After": str(retry_after_s)}
    return _json({"error": {"code": code, "message": message, "hint": hint}}, status or _STATUS.get(code, 400), said)


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(json.dumps(value, ensure_ascii=False, allow_nan=False), status, {**_DATA_HEADERS, **(headers or {})}, _MEDIA["json"])
