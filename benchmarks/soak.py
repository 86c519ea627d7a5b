"""An hour of load with alerts and pages in use: whether memory stays flat after warm-up, nothing is lost and pages go on to answer.

    python benchmarks/soak.py --rate 20000 --minutes 60 --out build/soak.json

Senders keep up a rate over gRPC. A browser's worth of pages is asked for all the time, one after the other, each with its drawings, beside
a report and a statement of SQL; a receiver takes a heartbeat each minute and a test notice now and then. Memory is the resident memory of
`serve` and all its children, every five seconds; warm-up is the first sixth. At the end every acknowledged span has to be in `spans` and
`requests`, once. A tenth of the rate shows whether this runs; it says nothing about an hour.
"""

from __future__ import annotations

import argparse
import base64
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import servers

PAGES = (
    "/", "/segment", "/segment?model=bench", "/lever?lever=speculation", "/compare?lever=speculation", "/notices", "/fleet", "/health",
    "/sql", "/metrics", "/api/verdicts", "/api/effects?lever=speculation", "/api/report?by=model&metrics=ttft_s,tpot_s&since=10m",
)  # fmt: skip
SQL = "select replica, count(*) as requests, avg(ttft_s) as ttft_s from requests where started_at > now() - interval 5 minute group by all"
MIB = 2**20
WARM_UP = 1 / 6  # of the time
KEY = base64.b64encode(b"of a soak and of nothing else").decode()
SAMPLED_EVERY_S, PAGE_EVERY_S, TEST_EVERY_S = 5.0, 5.0, 120.0


@dataclass
class Seen:
    """What was seen while it ran: memory in bytes, by seconds since the start; seconds that answers took; failures; notices that came."""

    memory: list[tuple[float, int]] = field(default_factory=list)
    answers_s: dict[str, list[float]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    notices: int = 0


def receiver(seen: Seen) -> ThreadingHTTPServer:
    """A webhook receiver that takes all."""

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            seen.notices += 1
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:  # quiet
            return

    return ThreadingHTTPServer(("127.0.0.1", 0), Taking)


def configured(folder: Path, port: int) -> None:
    """Writes the configuration of a server that tells the receiver."""
    folder.mkdir(parents=True)
    (folder / "leverwatch.toml").write_text(
        f'[[receivers]]\nname = "soak"\nkind = "webhook"\nurl = "http://127.0.0.1:{port}/"\nsecret = "whsec_{KEY}"\nheartbeat_s = 60\n',
        encoding="utf-8",
    )


def repeated(stop: threading.Event, every_s: float, work: Callable[[], None]) -> threading.Thread:
    """A thread that does something again and again until it is told to stop."""

    def run() -> None:
        while not stop.is_set():
            began_s = time.monotonic()
            work()
            stop.wait(max(0.0, every_s - (time.monotonic() - began_s)))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def asked(seen: Seen, name: str, request: Callable[[], httpx.Response]) -> None:
    """Asks once; how long it took, or what went wrong."""
    began_s = time.monotonic()
    try:
        request().raise_for_status()
    except httpx.HTTPError as error:
        seen.failures.append(f"{name}: {error!r}"[:200])
    else:
        seen.answers_s.setdefault(name, []).append(time.monotonic() - began_s)


def soaked(server: servers.Server, args: argparse.Namespace, seen: Seen) -> dict[str, Any]:
    """Keeps the load up for its time; what the senders say of it."""
    stop, began_s, turn = threading.Event(), time.monotonic(), iter(range(10**9))
    client = httpx.Client(base_url=str(server.url), timeout=60)

    def sample() -> None:
        seen.memory.append((time.monotonic() - began_s, servers.resident_bytes(server.process.pid)))

    def page() -> None:
        path = PAGES[next(turn) % len(PAGES)]
        asked(seen, path, lambda: client.get(path))

    def question() -> None:
        asked(seen, "SQL", lambda: httpx.post(f"{server.url}/api/sql", json={"sql": SQL}, timeout=60))

    def notice() -> None:
        asked(seen, "test notice", lambda: httpx.post(f"{server.url}/api/receivers/soak/test", timeout=60))

    works = ((SAMPLED_EVERY_S, sample), (PAGE_EVERY_S, page), (5 * PAGE_EVERY_S, question), (TEST_EVERY_S, notice))
    threads = [repeated(stop, every_s, work) for every_s, work in works]
    try:
        sending = servers.begin_sending(
            server, senders=args.senders, seconds=args.minutes * 60, rate=args.rate, lever="speculation", patience=60
        )
        return servers.outcome(sending)
    finally:
        stop.set()
        for thread in threads:
            thread.join(90)


def flatness(memory: list[tuple[float, int]]) -> dict[str, float]:
    """Memory after warm-up, in MiB: the median of its first and of its last sixth, the most, and the slope of a line through it an hour."""
    end_s = memory[-1][0]
    warm = [(at_s, held / MIB) for at_s, held in memory if at_s >= end_s * WARM_UP]
    sixth_s = end_s / 6
    first = statistics.median(held for at_s, held in warm if at_s < end_s * WARM_UP + sixth_s)
    last = statistics.median(held for at_s, held in warm if at_s >= end_s - sixth_s)
    slope = float(np.polyfit([at_s for at_s, _ in warm], [held for _, held in warm], 1)[0]) * 3600
    return {"first_mib": first, "last_mib": last, "most_mib": max(held for _, held in warm), "slope_mib_an_hour": slope}


def main() -> None:
    """Runs, prints what was seen, and writes it to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=20_000.0, help="spans a second")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--senders", type=int, default=16)
    parser.add_argument("--out", type=Path, help="a file for the figures, as JSON")
    args = parser.parse_args()
    seen = Seen()
    hook = receiver(seen)
    threading.Thread(target=hook.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="leverwatch-soak-") as name:
        folder = Path(name) / "data"
        configured(folder, hook.server_port)
        with servers.leverwatch(folder) as server:
            said = soaked(server, args, seen)
            spans, requests = server.wait_for(int(said["acknowledged"]), 300.0)
            used_s = server.cpu_s()
        disk_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    hook.shutdown()
    pages_s = [took_s for name, some in seen.answers_s.items() if name.startswith("/") for took_s in some]
    acknowledged = said["acknowledged"]
    found = {
        "minutes": args.minutes, "rate": said["spans_per_s"], "acknowledged": acknowledged, "spans": spans, "requests": requests,
        "failed": said["failed"], "slowed": said["slowed"], "median_ms": said["median_ms"], "p99_ms": said["p99_ms"],
        "pages": len(pages_s), "page_p50_s": float(np.quantile(pages_s, 0.5)), "page_p99_s": float(np.quantile(pages_s, 0.99)),
        "failures": seen.failures, "notices": seen.notices, "cpu_us_a_span": 1e6 * used_s / acknowledged,
        "bytes_a_span": disk_bytes / acknowledged, **flatness(seen.memory),
    }  # fmt: skip
    told(found)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(found | {"memory": seen.memory}), encoding="utf-8")


def told(found: dict[str, Any]) -> None:
    """Prints what was found."""
    for line in (
        "{minutes:g} min at {rate:,.0f} spans/s; acknowledged in {median_ms:.0f} ms, p99 {p99_ms:.0f} ms",
        "acknowledged {acknowledged:,}; in spans {spans:,}, in requests {requests:,}; told to wait {slowed}, failed {failed}",
        "MiB after warm-up {first_mib:,.0f}, at the end {last_mib:,.0f}, at most {most_mib:,.0f}; slope {slope_mib_an_hour:+.0f} an hour",
        "{pages} pages: p50 {page_p50_s:.2f} s, p99 {page_p99_s:.2f} s; {notices} notices",
        "{cpu_us_a_span:.1f} us of processor a span, pages included; {bytes_a_span:.0f} bytes a span kept",
        "failures: {failures}",
    ):
        print(line.format(**found))


if __name__ == "__main__":
    main()
