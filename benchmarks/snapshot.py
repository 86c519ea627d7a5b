"""A snapshot beside ingest: what it takes, how long senders wait meanwhile, and that every span acknowledged before it is in it, once.

    python benchmarks/snapshot.py --fill 1000000 --rate 10000

It starts a server on a temporary folder and loopback, fills it, goes on sending 512-span exports at a steady rate, takes a snapshot by the
command, checks it, and opens it as a data folder. Sender, server and command share the machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import grpc
import numpy as np
import servers
from senders import EXPORT, SPANS_A_BODY, Template

import leverwatch
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom

COMMAND = [sys.executable, "-m", "leverwatch.cli.main"]


class Steady:
    """Sends exports at a rate, and keeps when each was acknowledged and after how long."""

    def __init__(self, address: str, spans_per_s: float) -> None:
        self.address, self.pause_s = address, SPANS_A_BODY / spans_per_s
        self.delays: list[tuple[float, float]] = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._send)
        self.thread.start()

    def _send(self) -> None:
        rng = np.random.default_rng()
        template, due = Template(rng, SPANS_A_BODY, "steady"), time.monotonic()
        with grpc.insecure_channel(self.address) as channel:
            export = channel.unary_unary(EXPORT)
            while not self.stop.is_set():
                content, started = template.fresh(rng, time.time_ns())[0], time.monotonic()
                export(content, timeout=60)
                self.delays.append((time.monotonic(), time.monotonic() - started))
                due = max(due + self.pause_s, time.monotonic() - 1)
                time.sleep(max(0.0, due - time.monotonic()))

    def told(self, since: float, until: float) -> str:
        """The delays of the exports of a period, in milliseconds."""
        found = sorted(delay * 1e3 for at, delay in self.delays if since <= at < until)
        p99 = found[int(len(found) * 0.99)]
        return f"{len(found)} exports, {statistics.median(found):.1f} ms median, {p99:.1f} ms p99, {found[-1]:.1f} ms at most"


def main() -> None:
    """Runs the benchmark and prints its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--fill", type=int, default=500_000, help="spans before the snapshot")
    parser.add_argument("--rate", type=float, default=5_000.0, help="spans a second meanwhile")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder, copy = Path(place) / "data", Path(place) / "copy"
        ports = ["--port", "0", "--grpc-port", "0", "--otlp-http-port", "0", "--format", "json"]
        server = subprocess.Popen([*COMMAND, "serve", "--data", str(folder), *ports], stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            run(args, json.loads(server.stdout.readline())["otlp_grpc"], server.pid, folder, copy)
        finally:
            server.terminate()
            server.wait(60)


def run(args: argparse.Namespace, address: str, pid: int, folder: Path, copy: Path) -> None:
    """Fills, sends, takes the snapshot, counts, prints."""
    time.sleep(3)
    filled = 0
    while filled < args.fill:
        filled += servers.outcome(servers.begin_sending(address, senders=1, seconds=2))["acknowledged"]
    with leverwatch.connect(folder) as connection:
        while connection.sql("select count(*) as n from spans")["n"].item() < filled:
            time.sleep(1)
    sender = Steady(address, args.rate)
    time.sleep(10)
    before, acknowledged, resident_mib = time.monotonic(), len(sender.delays), servers.resident_bytes(pid) / 2**20
    subprocess.run([*COMMAND, "snapshot", str(copy), "--data", str(folder)], check=True)
    after = time.monotonic()
    sender.stop.set()
    sender.thread.join()
    print(f"before: {sender.told(before - 9, before)}")
    print(
        f"during: {sender.told(before, after)}; server {resident_mib:.0f} MiB before, {servers.resident_bytes(pid) / 2**20:.0f} MiB after"
    )
    print(f"the command took {after - before:.1f} s")
    subprocess.run([*COMMAND, "snapshot", str(copy), "--check"], check=True)
    room = EngineRoom(copy, Config())
    room.drain()
    spans, distinct = room.store.frame("select count(*) as n, count(distinct (trace_id, span_id)) as d from spans").rows()[0]
    room.close()
    low, high = filled + acknowledged * SPANS_A_BODY, filled + len(sender.delays) * SPANS_A_BODY
    print(f"{spans:,} spans, {distinct:,} of them distinct; {low:,} were acknowledged before the snapshot, {high:,} in the end")


if __name__ == "__main__":
    main()
