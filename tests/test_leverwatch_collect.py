"""Collectors as processes in front of one lake: under load with one killed, stopped, and refused what they cannot take."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from collectors_bodies import body, span

from collectors.otlp_grpc import SERVICE
from leverwatch.cli.main import main
from queries.lake import Lake
from queries.lake_upkeep import due, tidy

SPANS_A_BODY = 16
KILLED_AFTER, ENOUGH = 40, 120  # acknowledged bodies
PATIENCE_S = 90.0


class Running:
    """A collector process and its addresses."""

    def __init__(self, config: Path) -> None:
        command = [sys.executable, "-m", "leverwatch.cli.main", "collect", "--config", str(config), "--format", "json"]
        command += ["--port", "0", "--grpc-port", "0", "--otlp-http-port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def listen(self) -> None:
        """Waits for its addresses."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.addresses: dict[str, Any] = json.loads(line)

    def end(self, number: int) -> tuple[int, str]:
        """Sends a signal; gives its exit status and what it said."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "leverwatch.toml"
    file.write_text("[store]\nkind = 'delta'\nuri = 'lake'\ncommit_interval_s = 0.1\n", encoding="utf-8")
    return file


@pytest.fixture
def pair(config: Path) -> Iterator[list[Running]]:
    found = [Running(config), Running(config)]
    for one in found:
        one.listen()
    yield found
    for one in found:
        if one.process.poll() is None:
            one.end(signal.SIGKILL)


class Sender(threading.Thread):
    """Sends bodies to one collector of some, and what is not acknowledged again, to the next: as a client behind a balancer does."""

    def __init__(self, number: int, addresses: list[str], acknowledged: list[int], stop: threading.Event) -> None:
        super().__init__()
        self.number, self.acknowledged, self.stop = number, acknowledged, stop
        self.channels = [grpc.insecure_channel(address) for address in addresses]

    def run(self) -> None:
        place = self.number
        for step in range(10_000):
            first = 1 + (self.number * 10_000 + step) * SPANS_A_BODY
            content = body(*(span(first + one) for one in range(SPANS_A_BODY)))
            while not self.stop.is_set():
                export = self.channels[place % len(self.channels)].unary_unary(f"/{SERVICE}/Export")
                try:
                    export(content, timeout=10)
                except grpc.RpcError:
                    place += 1
                    continue
                self.acknowledged.append(first)
                break
            if self.stop.is_set():
                break
        for channel in self.channels:
            channel.close()


def wait_for(acknowledged: list[int], count: int) -> None:
    started = time.monotonic()
    while len(acknowledged) < count and time.monotonic() - started < PATIENCE_S:
        time.sleep(0.02)
    assert len(acknowledged) >= count


def test_of_two_collectors_under_load_one_is_killed_and_what_was_acknowledged_is_in_the_lake_once(
    pair: list[Running], tmp_path: Path
) -> None:
    acknowledged: list[int] = []
    stop = threading.Event()
    senders = [Sender(number, [one.addresses["otlp_grpc"] for one in pair], acknowledged, stop) for number in range(6)]
    for sender in senders:
        sender.start()
    wait_for(acknowledged, KILLED_AFTER)
    pair[0].end(signal.SIGKILL)
    wait_for(acknowledged, ENOUGH)
    assert httpx.get(f"{pair[1].addresses['url']}/readyz", timeout=10).json()["status"] == "ok"
    shown = httpx.get(f"{pair[1].addresses['url']}/metrics", timeout=10).text
    assert 'leverwatch_items{outcome="stored",signal="traces"}' in shown
    stop.set()
    for sender in senders:
        sender.join()
    assert pair[1].end(signal.SIGTERM) == (0, "")

    lake = Lake.open(str(tmp_path / "lake"))
    for hour in due(lake, "spans", lake.read("spans", ["received_at"])["received_at"].to_pylist()[0]):
        tidy(lake, "spans", hour)
    held = lake.read("spans", ["span_id"])["span_id"].to_pylist()
    asked = {f"{first + one:016x}" for first in acknowledged for one in range(SPANS_A_BODY)}
    assert (len(asked), asked - set(held)) == (len(acknowledged) * SPANS_A_BODY, set())
    assert len(held) == len(set(held))
    entries = lake.read("ingest_entries", ["stored"])["stored"].to_pylist()
    assert sum(entries) <= len(held)  # the killed one may have stored rows whose ledger it did not write any more


def test_a_collector_needs_a_lake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collect", "--data", str(tmp_path), "--port", "0"]) == 2
    assert "has no collectors of its own: `leverwatch serve` receives" in capsys.readouterr().err
