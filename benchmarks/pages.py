"""How long a page takes to its data, warm, beside millions of stored requests.

    python benchmarks/pages.py --requests 10000000
    python benchmarks/pages.py --folder /big/folder --keep     # fills it, or takes what is there

A scenario of the demo is stored many times over (`pages_rows.py`), and `leverwatch serve` opens it. Of each page the median and the slowest
of the rounds after the first are printed: wall time of the whole answer, charts drawn, as a client on loopback sees it, and the processor
time of the server for one answer.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pages_rows
import servers

ADDRESSES = (
    "/",
    "/segment",
    "/segment?{segment}",
    "/lever?lever=speculation",
    "/compare?lever=speculation",
    "/notices",
    "/fleet",
    "/fleet?{segment}",
    "/health",
    "/request?id={request_id}",
    "/sql",
    "/metrics",
    "/api/verdicts",
    "/api/effects?lever=speculation",
    "/api/report?by=model&metrics=ttft_s&from=cells",
)
SEGMENT_KEYS = ("model", "hardware", "topology", "input_bucket")


def main() -> None:
    """Fills, serves, asks and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000_000)
    parser.add_argument("--scenario", default="batch-grows")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="a data folder to fill, or one that this filled before")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary) / "data"
        if not (folder / "live.duckdb").exists():
            held = pages_rows.fill(folder, args.scenario, args.requests, datetime.now(UTC))
            print(f"{held:,} requests of {args.scenario} stored")
        with servers.leverwatch(folder) as served:
            measure(served, args.rounds)


def measure(served: servers.Server, rounds: int) -> None:
    """Prints one line a page."""
    with httpx.Client(base_url=str(served.url), timeout=120) as client:
        known = _known(client)
        for address in (one.format_map(known) for one in ADDRESSES):
            walls, busy = [], []
            for _ in range(rounds + 1):
                began, worked = time.perf_counter(), served.cpu_s()
                answer = client.get(address)
                walls.append(time.perf_counter() - began)
                busy.append(served.cpu_s() - worked)
            wall_ms, busy_ms = 1e3 * statistics.median(walls[1:]), 1e3 * statistics.median(busy[1:])
            print(
                f"{wall_ms:7.0f} ms (slowest {1e3 * max(walls[1:]):.0f}, first {1e3 * walls[0]:.0f}; {busy_ms:.0f} ms of processor time) "
                f"{answer.status_code} {len(answer.content) / 1024:.0f} KiB  {address}"
            )


def _known(client: httpx.Client) -> dict[str, str]:
    """A segment that is judged, and a request from the middle of what is stored, for the addresses."""
    segment = max((row["segment"] for row in client.get("/api/verdicts").json()), key=len)
    chosen = "&".join(f"{key}={segment[key]}" for key in SEGMENT_KEYS if key in segment)
    middle = "select request_id from requests where started_at >= (select min(started_at) + interval 8 hours from requests) limit 1"
    found = client.post("/api/sql", json={"sql": middle}).json()
    return {"segment": chosen, "request_id": found["rows"][0][0]}


if __name__ == "__main__":
    main()
