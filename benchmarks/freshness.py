"""How long it takes until what is acknowledged is read, and until a block that has ended has its verdicts, under a steady load.

    python benchmarks/freshness.py --rate 20000 --minutes 13

Beside the load a probe sends one request a second, each from a replica of its own, and a report by replica over the last 45 seconds is
asked for every second until the replica is in it: the delay is from the acknowledgement to the answer. A block's verdict is looked for in
`/api/verdicts`: its delay is from two minutes after the block's end, which is when the watermark lets it close, to the answer that has it.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import grpc
import httpx
import numpy as np
import senders
import servers

BLOCK_S, LAG_S = 300, 120
REPORT = {"by": "replica", "metrics": "e2e_s", "since": "45s"}


@dataclass
class Waited:
    """What was acknowledged when, and how long it took to be read; in seconds."""

    acknowledged: dict[str, float] = field(default_factory=dict)
    delays_s: list[float] = field(default_factory=list)
    asked_s: list[float] = field(default_factory=list)
    verdicts_s: dict[int, float] = field(default_factory=dict)


def probe(address: str, until: float, waited: Waited) -> None:
    """Sends one request a second."""
    rng = np.random.default_rng(7)
    with grpc.insecure_channel(address) as channel:
        export = channel.unary_unary(senders.EXPORT)
        for turn in range(10**6):
            if time.monotonic() > until:
                return
            replica = f"probe-{turn}"
            export(senders.Template(rng, 1, replica).fresh(rng, time.time_ns())[0], timeout=30)
            waited.acknowledged[replica] = time.monotonic()
            time.sleep(1)


def look(server: servers.Server, waited: Waited, first_block: int) -> None:
    """Asks once what is there."""
    began = time.monotonic()
    report = httpx.get(f"{server.url}/api/report", params=REPORT, timeout=60).raise_for_status().json()
    now = time.monotonic()
    waited.asked_s.append(now - began)
    for replica in {row["replica"] for row in report} & waited.acknowledged.keys():
        waited.delays_s.append(now - waited.acknowledged.pop(replica))
    verdicts = httpx.get(f"{server.url}/api/verdicts", timeout=60).raise_for_status().json()
    judged = [datetime.fromisoformat(row["block_ended_at"]).timestamp() for row in verdicts]
    for end in range(first_block, int(max(judged, default=0)) + 1, BLOCK_S):
        waited.verdicts_s.setdefault(end, time.time() - end - LAG_S)


def main() -> None:
    """Measures and prints the delays."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=20_000.0, help="spans a second")
    parser.add_argument("--minutes", type=float, default=13.0)
    args = parser.parse_args()
    waited = Waited()
    with tempfile.TemporaryDirectory() as folder, servers.leverwatch(Path(folder) / "data") as server:
        time.sleep(3)  # its kernels come out of the cache
        seconds = args.minutes * 60
        until, first_block = time.monotonic() + seconds, (int(time.time()) // BLOCK_S + 1) * BLOCK_S
        sending = servers.begin_sending(server, senders=8, spans=512, seconds=seconds, rate=args.rate, lever="speculation")
        thread = threading.Thread(target=probe, args=(server.grpc, until - 15, waited))
        thread.start()
        unanswered = 0
        while time.monotonic() < until:
            started = time.monotonic()
            try:
                look(server, waited, first_block)
            except httpx.HTTPError:
                unanswered += 1
            time.sleep(max(0.0, 1.0 - (time.monotonic() - started)))
        thread.join()
        found = servers.outcome(sending)
        peak = server.peak_bytes
    delays = np.asarray(waited.delays_s)
    print(f"{found['spans_per_s']:,.0f} spans/s acknowledged over {args.minutes:g} min, peak memory {peak / 2**20:,.0f} MiB")
    p50, p99 = np.quantile(delays, (0.5, 0.99))
    print(f"acknowledged to read: p50 {p50:.1f} s, p99 {p99:.1f} s, most {delays.max():.1f} s, of {len(delays)} probes (bar: 10 s at p99)")
    print(f"a report: p50 {np.quantile(waited.asked_s, 0.5):.2f} s, p99 {np.quantile(waited.asked_s, 0.99):.2f} s")
    print(f"never read: {sum(at < until - 30 for at in waited.acknowledged.values())}; questions without an answer: {unanswered}")
    said = ", ".join(f"{delay:.1f}" for _, delay in sorted(waited.verdicts_s.items()))
    print(f"block end plus two minutes to verdict, a block each: {said} s (bar: 10 s)")


if __name__ == "__main__":
    main()
