"""Figures asked for by the hundred beside pages and ingest: what an event loop, pages and acknowledgements wait, and what memory it needs.

    leverwatch demo --port 0 --for 100 --data DIR     # a folder with something to draw
    python benchmarks/drawing.py --data DIR --figures 200 --at-once 16

First figures are drawn by threads beside an event loop, in its own process and by `dashboards.studio`: how late a timer of the loop is.
Then, with `--data`, a server of that folder is asked. Pages are asked for one after the other: at first, of periods that nobody asked for
before, and again. Then one sender exports a span every 50 ms, first alone, then while figures are asked for as SVG and PNG, each of another
period.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import httpx
import servers

from dashboards import charts, drawing_child
from dashboards.charts import Series
from dashboards.studio import Studio

PAGES = ("", "segment", "lever?lever=speculation", "fleet")
KEYS = ("gain", "net-itl", "ttft", "requests")
SEND_S = 8.0


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, help="a folder that `leverwatch demo --data` has filled")
    parser.add_argument("--figures", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=16)
    args = parser.parse_args()
    studio = Studio()
    for where, draw in (("in its process", drawing_child.svg), ("by processes of its own", studio.svg)):
        draw(_specification(0, 1.0))
        asyncio.run(_loop(where, draw, args.figures, args.at_once))
    studio.close()
    if args.data:
        _served(args)


async def _loop(where: str, draw: Callable[[str], str], figures: int, at_once: int) -> None:
    """How late a loop's timer of 5 ms is while figures are drawn."""
    late_ms: list[float] = []

    async def ticking() -> None:
        while True:
            started_s = time.perf_counter()
            await asyncio.sleep(0.005)
            late_ms.append(1000 * (time.perf_counter() - started_s - 0.005))

    ticks, started_s, cpu_s = asyncio.create_task(ticking()), time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(at_once) as pool:
        asked = [_specification(number, started_s) for number in range(figures)]
        await asyncio.gather(*(asyncio.get_running_loop().run_in_executor(pool, draw, one) for one in asked))
    ticks.cancel()
    took_s, used_s = time.perf_counter() - started_s, time.process_time() - cpu_s
    late_ms.sort()
    said = f"median {statistics.median(late_ms):.1f}, p99 {late_ms[int(0.99 * len(late_ms))]:.0f}, at most {late_ms[-1]:.0f} ms"
    print(f"{figures} figures {where}: {took_s:.1f} s, CPU of the process {used_s:.1f} s; a timer is late by {said}", flush=True)


def _specification(number: int, seed: float) -> str:
    """A figure of two lines with 48 points each, no two alike."""
    since = datetime(2026, 3, 2, tzinfo=UTC)
    times = [since + timedelta(minutes=30 * n) for n in range(48)]
    series = [Series(name, name, [(at, seed + number + n % 7, 5) for n, at in enumerate(times)]) for name in ("red", "blue")]
    figure = charts.lines("k", "t", series, charts.MILLISECONDS, "", charts.Period(since, times[-1]), timedelta(hours=1))
    return figure.drawing or ""


def _served(args: argparse.Namespace) -> None:
    with servers.leverwatch(args.data) as server, httpx.Client(base_url=server.url or "", timeout=120) as client:
        until = datetime.fromisoformat(server.sql("select max(ended_at)::varchar from watermarks")[0]).astimezone(UTC)
        _told("at rest", server)
        _pages(client, until)
        _told("after pages", server)
        _acknowledged("alone", server)
        flood = threading.Thread(target=_flood, args=(client, until, args.figures, args.at_once))
        flood.start()
        _acknowledged("beside figures", server)
        flood.join()
        _told("after figures", server)


def _pages(client: httpx.Client, until: datetime) -> None:
    for page in PAGES:
        first = _took_ms(client, page)
        ends = [f"{'&' if '?' in page else '?'}until={_iso(until - timedelta(minutes=7 * n))}" for n in range(1, 4)]
        fresh = [_took_ms(client, page + end) for end in ends]
        kept = [_took_ms(client, page) for _ in range(5)]
        said = f"first {first:.0f} ms, of another period {statistics.median(fresh):.0f} ms, again {statistics.median(kept):.0f} ms"
        print(f"/{page}: {said}", flush=True)


def _took_ms(client: httpx.Client, path: str) -> float:
    started_s = time.monotonic()
    client.get(f"/{path}").raise_for_status()
    return 1000 * (time.monotonic() - started_s)


def _acknowledged(when: str, server: servers.Server) -> None:
    found = servers.outcome(servers.begin_sending(server, senders=1, spans=1, seconds=SEND_S, pause=0.05))
    print(f"acknowledgements {when}: median {found['median_ms']:.1f} ms, p99 {found['p99_ms']:.1f} ms", flush=True)


def _flood(client: httpx.Client, until: datetime, figures: int, at_once: int) -> None:
    def one(number: int) -> int:
        ends = _iso(until - timedelta(minutes=number))
        path = f"/figure/segment/{KEYS[number % len(KEYS)]}.{('svg', 'png')[number // 4 % 2]}?since=6h&until={ends}"
        while (answer := client.get(path)).status_code == 503:
            refused.append(number)
            time.sleep(float(answer.headers["retry-after"]))
        return answer.status_code

    refused: list[int] = []
    time.sleep(1)
    started_s = time.monotonic()
    with ThreadPoolExecutor(at_once) as pool:
        asked = [pool.submit(one, number) for number in range(figures)]
        pages = []
        while not all(future.done() for future in asked):
            pages.append(_took_ms(client, f"segment?until={_iso(until - timedelta(minutes=3 * len(pages) + 500))}"))
        statuses = collections.Counter(future.result() for future in asked)
    took_s, of = time.monotonic() - started_s, ", ".join(f"{count} with {status}" for status, count in sorted(statuses.items()))
    print(f"{figures} figures, {at_once} at once: {took_s:.1f} s ({of}; told {len(refused)} times to come again)")
    print(f"a segment page meanwhile: median {statistics.median(pages):.0f} ms of {len(pages)}", flush=True)


def _iso(at: datetime) -> str:
    return quote(at.isoformat())


def _told(when: str, server: servers.Server) -> None:
    own, *rest = ((pid, _resident_mb(pid)) for pid in servers.family(server.process.pid))
    print(f"resident {when}: {own[1]:.0f} MB, children {', '.join(f'{mb:.0f}' for _, mb in rest) or 'none'}", flush=True)


def _resident_mb(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * servers.PAGE_BYTES / 1e6
    except OSError:
        return 0.0


if __name__ == "__main__":
    main()
