"""An acknowledgement means synced: seen from outside, between the write of a body and its answer stands an fdatasync of the same file.

A page cache outlives a killed process, so that no test that kills can show it: strace can.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from collectors_bodies import body, span

STRACE = shutil.which("strace")
CALLS = "write,writev,pwrite64,sendto,sendmsg,fdatasync"
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
BODIES = 3
Traced = tuple[dict[str, str], Path]


def can_trace() -> bool:
    """Whether this machine lets a process be traced."""
    if STRACE is None:
        return False
    return subprocess.run([STRACE, "-f", "-o", os.devnull, "true"], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    """A server under strace: its addresses, and the file with its calls."""
    if not can_trace():
        pytest.skip("strace is not installed, or may not trace here (apt install strace)")
    folder = tmp_path_factory.mktemp("durable")
    trace = folder / "calls"
    command = [str(STRACE), "-f", "-y", "-s", "600", "--seccomp-bpf", "-e", f"trace={CALLS}", "-o", str(trace)]
    serve = [sys.executable, "-m", "leverwatch.cli.main", "serve", "--data", str(folder / "data"), "--format", "json"]
    ports = ["--port", "0", "--grpc-port", "0", "--otlp-http-port", "0"]
    with subprocess.Popen([*command, *serve, *ports], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        addresses = json.loads(process.stdout.readline())
        yield addresses, trace
        os.kill(addresses["pid"], signal.SIGTERM)
        process.wait(60)


def over_http(address: str, content: bytes) -> None:
    request = urllib.request.Request(f"{address}/v1/traces", content, {"content-type": "application/x-protobuf"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 200


def over_grpc(address: str, content: bytes) -> None:
    own = [("grpc.use_local_subchannel_pool", 1)]  # a connection of its own, whose first answer names its content type in letters
    with grpc.insecure_channel(address, own) as channel:
        channel.unary_unary(EXPORT)(content, timeout=30)


def calls_since(trace: Path, mark: str) -> list[str]:
    """The traced calls from the first on that writes a mark into the spool, that one left out."""
    lines = trace.read_text(encoding="utf-8", errors="replace").splitlines()
    found = [place for place, line in enumerate(lines) if mark in line and ".spool>" in line]
    assert found, f"no write of {mark} into the spool"
    return lines[found[0] + 1 :]


def first(lines: list[str], pattern: str) -> int:
    """The place of the first call of a form."""
    return next((place for place, line in enumerate(lines) if re.search(pattern, line)), len(lines))


@pytest.mark.parametrize(
    ("address", "send", "answer"),
    [("otlp_http", over_http, r"HTTP/1\.1 200"), ("otlp_grpc", over_grpc, r"sendmsg\(.*application/grpc")],
)
def test_a_body_is_synced_between_its_write_and_its_answer(
    traced: Traced, address: str, send: Callable[[str, bytes], None], answer: str
) -> None:
    addresses, trace = traced
    marks = [f"durable-{address}-{number}" for number in range(BODIES)]
    for number, mark in enumerate((*marks, "last")):  # strace has written down an answer for sure once the next body was taken
        send(addresses[address], body(span(1 + number + 100 * len(address)), scope=mark))
    for mark in marks:
        since = calls_since(trace, mark)
        begun = first(since, r"fdatasync\(\d+<.*\.spool>")
        assert begun < len(since), since[:20]
        thread = since[begun].split()[0]  # the database syncs its log too, in another thread
        done = first(since, rf"^{thread} +(fdatasync\(\d+<.*\.spool>\)|<\.\.\. fdatasync resumed>\)) *= 0$")
        answered = first(since, answer)
        assert begun <= done < answered < len(since), since[:20]
