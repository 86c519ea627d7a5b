"""A recorded file in, bodies for the door out, told by content: OTLP in its forms, and what engines and tools write to files."""

from __future__ import annotations

import gzip
import itertools
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from collectors import recorded_kinds, recorded_requests
from collectors.json_words import json_word
from collectors.otlp_json import REQUESTS
from collectors.recorded_kinds import KINDS, Kind, Line, NotLoadedError
from collectors.recorded_requests import RowError

GZIP = b"\x1f\x8b"
SHOWN_COLUMNS = 8


@dataclass(frozen=True, slots=True)
class Body:
    """One body for the door, and its signal."""

    signal: str
    content: bytes


def bodies(path: Path, kind: str = "") -> Iterator[Body | NotLoadedError]:
    """The bodies of a file in order; an error stands in the place of what could not be read. `kind` says what it is, if content does not.

    Raises:
        OSError: the file cannot be read.
    """
    content = path.read_bytes()
    if content.startswith(GZIP):
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            yield NotLoadedError(f"{path}: not a whole gzip file: {error}")
            return
    chosen = recorded_kinds.named(kind) if kind else None
    signal = None if chosen is not None and not chosen.is_otlp else _protobuf_signal(content)
    if signal is not None and (chosen is None or chosen.signal == signal):  # asked first: an export may begin as JSON does
        yield Body(signal, content)
    elif content.lstrip()[:1] in (b"{", b"["):
        yield from _json_bodies(path, content, chosen)
    elif recorded_requests.is_table(content) and (chosen is None or chosen.name == "requests"):
        yield from _table_bodies(path, content)
    else:
        yield NotLoadedError(f"{path}: {_why_unknown(path, content)}")


def _why_unknown(path: Path, content: bytes) -> str:
    """What a file that nothing reads seems to be, and what to do."""
    if path.name.removesuffix(".gz").endswith(".prom") or content.lstrip().startswith((b"# HELP ", b"# TYPE ")):
        return "the text of metrics, which says neither when nor of whom; it is scraped: [[scrape]] in leverwatch.toml"
    names = recorded_requests.columns(content)
    if names:
        shown = ", ".join(names[:SHOWN_COLUMNS]) + (f" and {len(names) - SHOWN_COLUMNS} more" if len(names) > SHOWN_COLUMNS else "")
        return f"no table of requests: its first line names {shown}; needed are started_at and request_id (or id)"
    return f"neither a protobuf export nor JSON that is known ({len(content)} bytes)"


def _table_bodies(path: Path, content: bytes) -> Iterator[Body | NotLoadedError]:
    try:
        for found in recorded_requests.bodies(recorded_requests.table_rows(content)):
            yield Body("requests", found) if isinstance(found, bytes) else NotLoadedError(f"{path}: {found}")
    except RowError as error:
        yield NotLoadedError(f"{path}: {error}")


def _protobuf_signal(content: bytes) -> str | None:
    for signal, kind in REQUESTS.items():
        try:
            request = kind.FromString(content)
        except DecodeError:
            continue
        if _is_sound(signal, request):
            return signal
    return None


def _is_sound(signal: str, request: Any) -> bool:
    """Whether a message says what its type means: bytes of one signal can often be parsed as another."""
    if signal == "traces":
        spans = [span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]
        return bool(spans) and all(len(span.trace_id) == 16 and len(span.span_id) == 8 for span in spans)
    if signal == "metrics":
        metrics = [metric for resource in request.resource_metrics for scope in resource.scope_metrics for metric in scope.metrics]
        return bool(metrics) and all(metric.name and metric.name.isprintable() and metric.WhichOneof("data") for metric in metrics)
    records = [record for resource in request.resource_logs for scope in resource.scope_logs for record in scope.log_records]
    return bool(records) and any(record.time_unix_nano or record.observed_time_unix_nano for record in records)


def _json_bodies(path: Path, content: bytes, chosen: Kind | None) -> Iterator[Body | NotLoadedError]:
    """The bodies of neighboring lines of one kind, kind by kind."""
    for kind, group in itertools.groupby(_told(path, content, chosen), lambda told: told[0]):
        lines = (line for _, line in group)
        if kind is None:
            yield from (line for line in lines if isinstance(line, NotLoadedError))
            continue
        read = [line for line in lines if isinstance(line, Line)]
        for found in kind.bodies(read, path):
            yield Body(kind.signal, found) if isinstance(found, bytes) else found


def _told(path: Path, content: bytes, chosen: Kind | None) -> Iterator[tuple[Kind | None, Line | NotLoadedError]]:
    for line in _lines(path, content):
        if isinstance(line, NotLoadedError):
            yield None, line
            continue
        kind = chosen or next((kind for kind in KINDS if kind.is_of(line.item)), None)
        yield (kind, line) if kind is not None else (None, _unknown(line))


def _unknown(line: Line) -> NotLoadedError:
    if not isinstance(line.item, dict):
        return NotLoadedError(f"{line.where}: a JSON object of a kind that is known is taken, not {json_word(line.item)}")
    known = ", ".join(kind.name for kind in KINDS)
    return NotLoadedError(f"{line.where}: of no known kind; keys: {', '.join(list(line.item)[:5])}; known kinds: {known}")


def _lines(path: Path, content: bytes) -> Iterator[Line | NotLoadedError]:
    """The objects of a file: one, an array of them, or one a line."""
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError):
        for number, text in enumerate(content.splitlines(), 1):
            if text.strip():
                yield _line(f"{path}:{number}", text)
        return
    if recorded_kinds.is_one(whole):
        yield Line(str(path), content, whole)
        return
    for item in whole:
        yield Line(str(path), json.dumps(item).encode(), item)


def _line(where: str, text: bytes) -> Line | NotLoadedError:
    try:
        return Line(where, text, json.loads(text))
    except (ValueError, RecursionError) as error:
        return NotLoadedError(f"{where}: not JSON: {error}")
