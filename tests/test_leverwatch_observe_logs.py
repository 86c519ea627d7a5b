"""The log as JSON: one object a line, with what a record holds, errors as fields, and no secret that a library would tell."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from leverwatch.observe import logs
from leverwatch.observe_settings import Observe

TOLD = """
import logging, sys, threading, warnings
from leverwatch.observe import logs
from leverwatch.observe_settings import Observe
logs.set_up(Observe(log_format="json", log_level="info"))
log = logging.getLogger("leverwatch")
log.info("a line\\nof %s", "two", extra={"job": "load"})
logging.getLogger("httpx").info("POST https://hooks.example/secret")
logging.getLogger("uvicorn.error").warning("odd")
warnings.warn("old", stacklevel=1)
thread = threading.Thread(target=lambda: 1 / 0, name="broken")
thread.start(); thread.join()
raise ValueError("nobody caught it")
"""


@pytest.fixture(scope="module")
def lines() -> list[dict[str, object]]:
    ran = subprocess.run([sys.executable, "-c", TOLD], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1
    return [json.loads(line) for line in ran.stderr.splitlines()]


def test_every_line_is_an_object_with_time_level_logger_and_message(lines: list[dict[str, object]]) -> None:
    assert all({"time", "level", "logger", "message", "thread"} <= line.keys() for line in lines)
    assert all(str(line["time"]).endswith("Z") for line in lines)
    first = lines[0]
    assert (first["level"], first["logger"], first["message"], first["job"]) == ("info", "leverwatch", "a line\nof two", "load")


def test_what_libraries_tell_at_info_is_not_written(lines: list[dict[str, object]]) -> None:
    assert "secret" not in json.dumps(lines)
    assert {line["logger"] for line in lines} >= {"leverwatch", "uvicorn.error", "py.warnings"}


def test_errors_that_nobody_caught_are_fields_of_a_line(lines: list[dict[str, object]]) -> None:
    errors = [line["error"] for line in lines if "error" in line]
    assert [(error["type"], error["message"]) for error in errors if isinstance(error, dict)] == [  # type: ignore[index]
        ("ZeroDivisionError", "division by zero"),
        ("ValueError", "nobody caught it"),
    ]
    assert all("Traceback" in str(error) for error in errors)


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, as it was before afterwards."""
    logger = logging.getLogger()
    before, hook, hooked = logger.handlers, threading.excepthook, sys.excepthook
    levels = {name: logging.getLogger(name).level for name in (*logs.OURS, "leverwatch.work")}
    yield logger
    logger.handlers, threading.excepthook, sys.excepthook = before, hook, hooked
    logging.captureWarnings(False)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def test_as_long_as_nothing_is_asked_for_nothing_is_touched(root: logging.Logger) -> None:
    before = root.handlers
    logs.set_up(Observe())
    assert root.handlers is before
    assert not logs.is_json()


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_line_has_the_ids_of_its_trace_where_spans_are_sent(root: logging.Logger, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up(Observe(log_format=form, endpoint="http://127.0.0.1:9"))  # type: ignore[arg-type]
    logging.getLogger("leverwatch").warning("before")
    logs.show_ids(lambda: ("a" * 32, "b" * 16))
    logging.getLogger("leverwatch").warning("within")
    before, within = capsys.readouterr().err.splitlines()
    assert "a" * 32 not in before
    assert "a" * 32 in within
    assert "b" * 16 in within
    assert logs.is_json() == (form == "json")
    assert root.handlers
