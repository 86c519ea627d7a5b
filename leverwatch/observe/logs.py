"""Log records in, lines on standard error out: as text, or one JSON object a line.

An object has `time` (UTC), `level`, `logger`, `message`, `thread`, what the record was given beside these (such as `job`), the ids of trace
and span where spans are sent, and of an exception `error` with `type`, `message` and `trace`.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from leverwatch.observe_settings import Observe

Ids = Callable[[], tuple[str, str] | None]
_USUAL = {*vars(logging.makeLogRecord({})), "message", "asctime", "color_message", "taskName"}
OURS = ("alerts", "collectors", "dashboards", "leverwatch", "pipeline", "queries")
"""Loggers that `log_level` is of. Others stay at warning: an HTTP client tells every URL at info, and a chat's URL is its secret."""


class Text(logging.Formatter):
    """The bare message, as it is without any set-up; behind it the trace's id where one is known."""

    ids: Ids = staticmethod(lambda: None)

    def format(self, record: logging.LogRecord) -> str:
        """One record."""
        said, ids = super().format(record), self.ids()
        return f"{said} trace_id={ids[0]} span_id={ids[1]}" if ids else said


class Json(logging.Formatter):
    """One JSON object a line."""

    ids: Ids = staticmethod(lambda: None)

    def format(self, record: logging.LogRecord) -> str:
        """One record."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        told: dict[str, Any] = {"time": time, "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
        told["thread"] = record.threadName
        told |= {key: value for key, value in vars(record).items() if key not in _USUAL}
        if ids := self.ids():
            told |= {"trace_id": ids[0], "span_id": ids[1]}
        if record.exc_info and record.exc_info[0] is not None:
            told["error"] = _error(*record.exc_info)
        return json.dumps(told, default=str, ensure_ascii=False)


def _error(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> dict[str, str]:
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    return {"type": name, "message": str(error), "trace": "".join(traceback.format_exception(kind, error, trace))}


def set_up(asked: Observe) -> None:
    """Lets this process log as configured; as long as that is the default, nothing is touched. What nobody caught is logged too."""
    if asked.log_format == "text" and asked.log_level == "warning" and not asked.endpoint:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(Json() if asked.log_format == "json" else Text())
    root = logging.getLogger()
    root.handlers = [handler]
    for name in OURS:
        logging.getLogger(name).setLevel(asked.log_level.upper())
    logging.getLogger("leverwatch.work").setLevel("INFO")  # what a worker does is its output
    if asked.log_format == "json":
        logging.captureWarnings(True)
        sys.excepthook = _uncaught
        threading.excepthook = lambda hooked: _uncaught(hooked.exc_type, hooked.exc_value, hooked.exc_traceback)


def is_json() -> bool:
    """Whether this process writes its log as JSON."""
    return any(isinstance(handler.formatter, Json) for handler in logging.getLogger().handlers)


def show_ids(ids: Ids) -> None:
    """Lets lines have the ids of the trace and span that they were written in."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, (Text, Json)):
            handler.formatter.ids = ids


def _uncaught(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    exc_info: Any = (kind, error, trace)
    logging.getLogger("leverwatch").critical("nobody caught an error", exc_info=exc_info)
