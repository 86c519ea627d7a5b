"""A snapshot through a running server, by the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from collectors_bodies import body, span

import leverwatch

COMMAND = [sys.executable, "-m", "leverwatch.cli.main"]
PROTOBUF = {"content-type": "application/x-protobuf"}


@pytest.fixture
def addresses(tmp_path: Path) -> Iterator[dict[str, str]]:
    ports = ["--port", "0", "--grpc-port", "0", "--otlp-http-port", "0", "--format", "json"]
    process = subprocess.Popen([*COMMAND, "serve", "--data", str(tmp_path / "data"), *ports], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield json.loads(process.stdout.readline())
    process.terminate()
    process.communicate(timeout=60)


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=120, env=dict(os.environ))


def test_a_served_folder_is_copied_whole_by_the_command_and_served_on(tmp_path: Path, addresses: dict[str, str]) -> None:
    now = time.time_ns()
    for number in range(1, 6):
        one = body(span(number, start_time_unix_nano=now + number, end_time_unix_nano=now + number + 1_000_000))
        assert httpx.post(f"{addresses['otlp_http']}/v1/traces", content=one, headers=PROTOBUF).status_code == 200
    taken = command("snapshot", str(tmp_path / "copy"), "--data", str(tmp_path / "data"))
    assert taken.returncode == 0, taken.stderr
    assert command("snapshot", str(tmp_path / "copy"), "--check").returncode == 0
    assert command("snapshot", str(tmp_path / "copy"), "--data", str(tmp_path / "data")).returncode == 2
    assert list((tmp_path / "data/parts/snapshots").iterdir()) == []
    assert httpx.get(f"{addresses['url']}/readyz").json()["status"] == "ok"
    report = command("report", "--data", str(tmp_path / "copy"), "--metrics", "tpot_s", "--format", "json")
    assert report.returncode == 0, report.stderr
    with leverwatch.connect(tmp_path / "copy") as connection:
        connection.room.drain()
        assert connection.sql("select count(*) as n from spans").item() == 5
