"""The servers that the benchmarks measure: a command in, a running process out, with its addresses, its memory and its CPU time.

Everything listens on loopback and free ports; data lies in a folder that the caller gives. What the senders did comes back as a dict.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

HERE = Path(__file__).resolve().parent
TICKS_A_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
SAMPLE_EVERY_S = 0.1
COUNTS = "select (select count(*) from spans) as spans, (select count(*) from requests) as requests"


class StartError(RuntimeError):
    """A server did not come up; says what it last said."""


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def family(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text(encoding="ascii").split()]
    return found


def resident_bytes(pid: int) -> int:
    """The resident memory of a process and its children."""
    total = 0
    for member in family(pid):
        with contextlib.suppress(OSError):
            total += int(Path(f"/proc/{member}/statm").read_text(encoding="ascii").split()[1]) * PAGE_BYTES
    return total


def cpu_s(pid: int) -> float:
    """The CPU time of a process, its children, and those that it has waited for."""
    ticks = 0
    for member in family(pid):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{member}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            ticks += sum(int(number) for number in fields[11 : 15 if member == pid else 13])
    return ticks / TICKS_A_S


class Server:
    """A running server: its gRPC address, its page's URL where it has one, its peak of memory since it started."""

    def __init__(self, process: subprocess.Popen[str], grpc: str, url: str | None = None) -> None:
        self.process, self.grpc, self.url = process, grpc, url
        self.peak_bytes = 0
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()

    def _look(self) -> None:
        while self.process.poll() is None:
            self.peak_bytes = max(self.peak_bytes, resident_bytes(self.process.pid))
            time.sleep(SAMPLE_EVERY_S)

    def cpu_s(self) -> float:
        """The CPU time used so far."""
        return cpu_s(self.process.pid)

    def sql(self, text: str) -> list[Any]:
        """The first row of an answer; raises httpx.HTTPError where the server gives none."""
        answer = httpx.post(f"{self.url}/api/sql", json={"sql": text}, timeout=60)
        answer.raise_for_status()
        row: list[Any] = answer.json()["rows"][0]
        return row

    def backlog_bytes(self) -> int:
        """What waits in the spool."""
        return int(httpx.get(f"{self.url}/readyz", timeout=60).json()["backlog_bytes"])

    def counts(self) -> tuple[int, int]:
        """How many spans and requests SQL sees; -1 where it gives no answer."""
        try:
            spans, requests = self.sql(COUNTS)
        except httpx.HTTPError:
            return -1, -1
        return spans, requests

    def wait_for(self, rows: int, patience_s: float) -> tuple[int, int]:
        """The counts once both have reached `rows`, or as they stand when the time is up. Asks SQL only when nothing waits to be loaded."""
        until = time.monotonic() + patience_s
        while self.backlog_bytes() and time.monotonic() < until:
            time.sleep(0.5)
        while True:
            found = self.counts()
            if min(found) >= rows or time.monotonic() > until:
                return found
            time.sleep(1)

    def kill(self) -> None:
        """SIGKILL, and waits."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)

    def stop(self) -> None:
        """SIGTERM, and waits; nothing where it has ended."""
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()


def serve_command(folder: Path, grpc_port: int = 0, before: tuple[str, ...] = ()) -> list[str]:
    """The command line of `leverwatch serve` over a folder; `before` replaces its start."""
    start = before or (sys.executable, "-m", "leverwatch.cli.main")
    ports = ("--port", "0", "--grpc-port", str(grpc_port), "--otlp-http-port", "0")
    return [*start, "serve", "--data", str(folder), "--format", "json", *ports]


@contextlib.contextmanager
def leverwatch(folder: Path, grpc_port: int = 0, before: tuple[str, ...] = ()) -> Iterator[Server]:
    """A running `leverwatch serve` over a folder; what it says is written beside the folder.

    Raises:
        StartError: it ended before it listened.
    """
    with (folder.parent / f"{folder.name}.log").open("a+", encoding="utf-8") as said:
        process = subprocess.Popen(serve_command(folder, grpc_port, before), stdout=subprocess.PIPE, stderr=said, text=True)
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            said.seek(0)
            msg = f"leverwatch serve ended with status {process.wait()}: {said.read()[-500:]}"
            raise StartError(msg)
        addresses = json.loads(line)
        server = Server(process, addresses["otlp_grpc"], addresses["url"])
        try:
            yield server
        finally:
            server.stop()


def rotel_binary() -> Path:
    """Where PyPI's rotel has put its program.

    Raises:
        StartError: it is not installed.
    """
    try:
        import rotel
    except ImportError as error:
        msg = "rotel is not installed: pip install rotel"
        raise StartError(msg) from error
    return Path(rotel.__file__).with_name("rotel-agent")


@contextlib.contextmanager
def rotel(folder: Path, *options: str) -> Iterator[Server]:
    """Rotel with an OTLP receiver; without options it exports into its blackhole.

    Raises:
        StartError: it is not installed, or does not listen within 10 s.
    """
    port, http_port = free_port(), free_port()
    receivers = ("--otlp-grpc-endpoint", f"127.0.0.1:{port}", "--otlp-http-endpoint", f"127.0.0.1:{http_port}")
    with (folder / "rotel.log").open("w", encoding="utf-8") as said:
        command = [str(rotel_binary()), "start", *receivers, *(options or ("--exporter", "blackhole"))]
        server = Server(subprocess.Popen(command, stdout=said, stderr=said, text=True), f"127.0.0.1:{port}")
        try:
            await_port(server.process, port)
            yield server
        finally:
            server.stop()


def await_port(process: subprocess.Popen[str], port: int) -> None:
    """Waits until something listens.

    Raises:
        StartError: the process ended, or 10 s went by.
    """
    until = time.monotonic() + 10
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        time.sleep(0.05)
    msg = f"nothing listens on port {port}; the process says {process.poll()}"
    raise StartError(msg)


def begin_sending(server: Server | str, **options: Any) -> subprocess.Popen[str]:
    """Starts the load generator of `senders.py` against a server; its options by name."""
    address = server if isinstance(server, str) else server.grpc
    flags = [text for name, value in options.items() if value is not None for text in (f"--{name}", str(value))]
    return subprocess.Popen([sys.executable, str(HERE / "senders.py"), address, *flags], stdout=subprocess.PIPE, text=True)


def outcome(sending: subprocess.Popen[str]) -> dict[str, Any]:
    """What the load generator says at its end.

    Raises:
        StartError: it failed.
    """
    text, _ = sending.communicate()
    if sending.returncode:
        msg = f"the load generator ended with status {sending.returncode}"
        raise StartError(msg)
    found: dict[str, Any] = json.loads(text)
    return found
