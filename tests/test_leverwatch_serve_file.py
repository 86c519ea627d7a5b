"""Whether the process that wrote `serve.json` still runs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leverwatch import serve_file
from leverwatch.serve_file import Addresses


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    started = subprocess.Popen(["sleep", "60"])
    yield started
    started.kill()
    started.wait()


def _addresses(pid: int) -> Addresses:
    return Addresses(pid, "http://127.0.0.1:1", "127.0.0.1:2", "http://127.0.0.1:3")


def _change(folder: Path, **changed: Any) -> None:
    path = folder / serve_file.NAME
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))


def test_a_running_process_is_live_until_it_is_killed_even_if_nobody_waits_for_it(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    serve_file.write(tmp_path, _addresses(process.pid))
    assert serve_file.live(tmp_path) == _addresses(process.pid)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert serve_file.live(tmp_path) is None


def test_a_later_process_of_the_same_number_is_not_the_server(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    serve_file.write(tmp_path, _addresses(os.getpid()))
    _change(tmp_path, pid=process.pid)
    assert serve_file.live(tmp_path) is None


def test_the_same_number_after_a_reboot_is_not_the_server(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    serve_file.write(tmp_path, _addresses(process.pid))
    tick = json.loads((tmp_path / serve_file.NAME).read_text())["mark"].split()[1]
    _change(tmp_path, mark=f"another-boot {tick}")
    assert serve_file.live(tmp_path) is None


@pytest.mark.parametrize("pid", [0, -1, 2**40])
def test_without_a_mark_another_process_of_the_number_counts_and_this_one_does_not(
    tmp_path: Path, process: subprocess.Popen[bytes], pid: int
) -> None:
    serve_file.write(tmp_path, _addresses(process.pid))
    _change(tmp_path, mark="")
    assert serve_file.live(tmp_path) == _addresses(process.pid)
    for not_running in (os.getpid(), pid):
        _change(tmp_path, pid=not_running)
        assert serve_file.live(tmp_path) is None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": "x"}'])
def test_a_broken_file_names_no_server(tmp_path: Path, content: str) -> None:
    (tmp_path / serve_file.NAME).write_text(content)
    assert serve_file.live(tmp_path) is None
