"""Stopping the demo's server: it may take as long as it does something; what does nothing is ended, and that is said."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from leverwatch.cli import demo_server

QUIET_S = 0.4
WRITES = """
def last(*_):
    for number in range(10):
        (pathlib.Path(sys.argv[1]) / f"spool-{number}").write_text("x")
        time.sleep(0.15)
    sys.exit(0)
"""
COMPUTES = """
def last(*_):
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        pass
    sys.exit(0)
"""
HANGS = """
def last(*_):
    time.sleep(60)
"""


@pytest.fixture
def servers() -> Iterator[list[subprocess.Popen[str]]]:
    begun: list[subprocess.Popen[str]] = []
    yield begun
    for one in begun:
        one.kill()
        one.communicate()


def stopping(servers: list[subprocess.Popen[str]], folder: Path, last: str) -> subprocess.Popen[str]:
    code = f"import pathlib, signal, sys, time\n{last}\nsignal.signal(signal.SIGTERM, last)\nprint(1, flush=True)\ntime.sleep(60)\n"
    server = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True)
    servers.append(server)
    assert server.stdout is not None
    assert server.stdout.readline() == "1\n"
    return server


@pytest.mark.parametrize("last", [WRITES, COMPUTES], ids=["writes", "computes"])
def test_a_server_that_does_something_is_waited_for_however_long(servers: list[subprocess.Popen[str]], tmp_path: Path, last: str) -> None:
    said: list[str] = []
    server = stopping(servers, tmp_path, last)
    demo_server.stop(server, tmp_path, said.append, QUIET_S)
    assert server.returncode == 0
    assert said == ["the server still writes what it was sent; waiting until it has stopped"]


def test_a_server_that_does_nothing_is_ended_and_that_is_said(servers: list[subprocess.Popen[str]], tmp_path: Path) -> None:
    said: list[str] = []
    server = stopping(servers, tmp_path, HANGS)
    demo_server.stop(server, tmp_path, said.append, QUIET_S)
    assert server.returncode < 0
    assert said == [f"the server did nothing for 0.4 s and did not stop: ended. What it acknowledged is in {tmp_path / 'spool'}"]
