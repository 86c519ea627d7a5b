"""Collectors, worker and server on hosts of their own, each cut off and put back: what was acknowledged is a request, once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from net_hosts import Hosts, hosts, reason

pytestmark = pytest.mark.long
LIMIT_S = 600.0
CUT_S = 5.0
STAGE = 512
TESTS = Path(__file__).parent
MOTO = """
import logging, sys, time
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
ThreadedMotoServer(ip_address="0.0.0.0", port=9000, verbose=False).start()
import urllib.request
urllib.request.urlopen(urllib.request.Request("http://127.0.0.1:9000/lake", method="PUT"), timeout=10).close()
print("ready", flush=True)
sys.stdin.read()
"""
ASK = """
import json, sys, urllib.request
asked = urllib.request.Request(sys.argv[1] + "/api/sql", json.dumps({"sql": sys.argv[2]}).encode(), {"content-type": "application/json"})
print(json.dumps(json.load(urllib.request.urlopen(asked, timeout=20))["rows"]))
"""


class Fleet:
    """The hosts, what runs on them, and until when the test may take."""

    def __init__(self, net: Hosts, folder: Path, stack: ExitStack) -> None:
        self.net, self.folder, self.stack = net, folder, stack
        self.until_s = time.monotonic() + LIMIT_S
        self.start_s = int(time.time()) - 1800
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.store = f"http://{net.addresses['store']}:9000"

    def left_s(self) -> float:
        left = self.until_s - time.monotonic()
        assert left > 0, f"the test took more than {LIMIT_S} s"
        return left

    def start(self, name: str, host: str, *command: str) -> str:
        """Starts a process on a host, and gives the first line that it prints."""
        log = self.stack.enter_context((self.folder / f"{name}.log").open("w"))
        words = self.net.words(host, sys.executable, *command)
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        self.processes[name] = process
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (self.folder / f"{name}.log").read_text()[-2000:]
        return line

    def role(self, name: str, host: str, *words: str) -> None:
        """Starts one of our commands on a host, and waits for its addresses."""
        told = self.start(
            name, host, "-m", "leverwatch.cli.main", *words, "--config", str(self.folder / "leverwatch.toml"), "--format", "json"
        )
        json.loads(told)

    def end(self, name: str) -> None:
        """Ends a process as an operator does."""
        process = self.processes.pop(name)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)

    def work(self, *words: str) -> list[str]:
        """The words of a worker that does its tasks itself."""
        return [
            "-m", "leverwatch.cli.main", "work", "--workers", "0", "--config", str(self.folder / "leverwatch.toml"),
            "--data", str(self.folder / "work"), *words,
        ]  # fmt: skip

    def sender(self, first: int) -> subprocess.Popen[str]:
        """Sends a stage's spans from the engines' host, each until it is acknowledged."""
        urls = [f"http://{self.net.addresses['collect']}:{port}" for port in (4318, 14318)]
        words = self.net.words(
            "engines", sys.executable, str(TESTS / "hosts_sender.py"), *map(str, (self.start_s, first, STAGE, self.left_s())), *urls
        )
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)

    def failed(self, sender: subprocess.Popen[str]) -> int:
        """How many exports were not acknowledged at their first try, once all are."""
        told, _ = sender.communicate(timeout=self.left_s())
        assert sender.returncode == 0, "some spans were never acknowledged"
        return int(told.split()[-1])

    def ask(self, sql: str) -> Any:
        """The server's answer, asked from the engines' host."""
        words = self.net.words("engines", sys.executable, "-c", ASK, f"http://{self.net.addresses['serve']}:8080", sql)
        done = subprocess.run(words, capture_output=True, text=True, timeout=self.left_s(), check=False)
        return json.loads(done.stdout) if not done.returncode else done.stderr[-500:]

    def wait_for(self, sql: str, expected: Sequence[Any]) -> None:
        found = self.ask(sql)
        while found != expected:
            assert time.monotonic() < self.until_s, f"{sql} gives {found}"
            time.sleep(2)
            found = self.ask(sql)


@contextmanager
def fleet(net: Hosts, folder: Path) -> Iterator[Fleet]:
    with ExitStack() as stack:
        made = Fleet(net, folder, stack)
        try:
            yield made
        finally:
            for process in made.processes.values():
                process.kill()
                process.communicate()


def test_hosts_that_are_cut_off_and_come_back_lose_nothing_and_count_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    why = reason()
    if why:
        pytest.skip(why)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS.parent), str(TESTS)]))
    with hosts("engines", "collect", "work", "serve", "store") as net, fleet(net, tmp_path) as at:
        (tmp_path / "leverwatch.toml").write_text(
            '[serve]\nhost = "0.0.0.0"\nallow_open = true\n[store]\nkind = "delta"\nuri = "s3://lake/fleet"\n'
            f'options = {{ AWS_ENDPOINT_URL = "{at.store}", AWS_ALLOW_HTTP = "true", AWS_ACCESS_KEY_ID = "test", '
            'AWS_SECRET_ACCESS_KEY = "test", AWS_REGION = "us-east-1" }\n'
        )
        at.start("store", "store", "-c", MOTO)
        at.role("collector 0", "collect", "collect")
        ports = ("--grpc-port", "14317", "--otlp-http-port", "14318", "--port", "18080")
        at.role("collector 1", "collect", "collect", *ports)
        at.role("server", "serve", "serve", "--data", str(tmp_path / "serve"))
        assert at.failed(at.sender(1)) == 0
        at.start("worker", "work", *at.work("--every", "2"))

        with net.cut_off("collect"):
            waiting = at.sender(1 + STAGE)
            assert waiting.stdout is not None
            assert waiting.stdout.readline() == "not acknowledged\n"
            time.sleep(CUT_S)
        assert at.failed(waiting) > 0

        for host in ("work", "serve"):
            with net.cut_off(host):
                assert at.failed(at.sender(1 + STAGE * (2 if host == "work" else 3))) == 0

        at.end("worker")
        last = net.words("work", sys.executable, *at.work("--once"))
        assert subprocess.run(last, capture_output=True, timeout=at.left_s(), check=False).returncode == 0
        at.wait_for("select count(*), count(distinct trace_id), count(distinct replica) from requests", [[4 * STAGE, 4 * STAGE, 2]])
        assert at.ask("select count(distinct span_id) from spans") == [[4 * STAGE]]
        for name in ("collector 0", "collector 1", "server"):
            at.end(name)
