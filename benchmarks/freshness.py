"""How long it takes until what is acknowledged is read, and until a block that has ended has its verdicts, under a steady load.

    python benchmarks/freshness.py --rate 20000 --minutes 13

Beside the load a probe sends one request a second and asks for it by SQL, twice a second, until it is there: its delay is from the
acknowledgement to the answer that has it. A block's verdict is looked for in the same way: its delay is from two minutes after the block's
end, which is when the watermark lets it close, to the answer that has a verdict of that block.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import httpx
import numpy as np
import senders
import servers

BLOCK_S, LAG_S = 300, 120
MARK = bytes.fromhex("feedfeedfeed")
SEEN = (
    "select list(trace_id) as ids, (select epoch(max(block_ended_at)) from current_verdicts) as judged_until from requests "
    "where started_at > now() - interval 90 second and trace_id between 'feedfeedfeed' and 'feedfeedfeee'"
)


@dataclass
class Waited:
    """What was acknowledged when, and how long it took to be read; in seconds."""

    acknowledged: dict[str, float] = field(default_factory=dict)
    delays_s: list[float] = field(default_factory=list)
    verdicts_s: dict[int, float] = field(default_factory=dict)


def probe(address: str, until: float, waited: Waited) -> None:
    """Sends one request a second."""
    rng = np.random.default_rng(7)
    template = senders.Template(rng, 1, "probe")
    with grpc.insecure_channel(address) as channel:
        export = channel.unary_unary(senders.EXPORT)
        for turn in range(10**6):
            if time.monotonic() > until:
                return
            body, ids = template.fresh(rng, time.time_ns())
            trace = MARK + turn.to_bytes(10, "big")
            export(body.replace(ids[0, :16].tobytes(), trace), timeout=30)
            waited.acknowledged[trace.hex()] = time.monotonic()
            time.sleep(1)


def look(server: servers.Server, waited: Waited, first_block: int) -> None:
    """Asks once what is there."""
    ids, judged_until = server.sql(SEEN)
    now, wall = time.monotonic(), time.time()
    for trace in set(ids or ()) & waited.acknowledged.keys():
        waited.delays_s.append(now - waited.acknowledged.pop(trace))
    for end in range(first_block, int(judged_until or 0) + 1, BLOCK_S):
        waited.verdicts_s.setdefault(end, wall - end - LAG_S)


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
            time.sleep(max(0.0, 0.5 - (time.monotonic() - started)))
        thread.join()
        found = servers.outcome(sending)
        peak = server.peak_bytes
    delays = np.asarray(waited.delays_s)
    print(f"{found['spans_per_s']:,.0f} spans/s acknowledged over {args.minutes:g} min, peak memory {peak / 2**20:,.0f} MiB")
    p50, p99 = np.quantile(delays, (0.5, 0.99))
    print(f"acknowledged to read: p50 {p50:.1f} s, p99 {p99:.1f} s, most {delays.max():.1f} s, of {len(delays)} probes (bar: 10 s at p99)")
    print(f"never read: {sum(at < until - 30 for at in waited.acknowledged.values())}; questions without an answer: {unanswered}")
    said = ", ".join(f"{delay:.1f}" for _, delay in sorted(waited.verdicts_s.items()))
    print(f"block end plus two minutes to verdict, a block each: {said} s (bar: 10 s)")


if __name__ == "__main__":
    main()
