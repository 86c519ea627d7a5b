"""Collectors in front of one lake in a local folder: the same senders against one, two and more of them, with all spans counted at the end.

    python benchmarks/collect.py --collectors 1 2 --senders 32 --seconds 20

Per row: spans/s acknowledged, the delay of an acknowledgement, the collectors' CPU time a span, what reading and committing took a round,
bytes a span as they were written and once merged, and how many of the acknowledged spans the lake holds. Senders, `senders.py`, share the
machine and are spread over the collectors.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import servers

from queries.lake import Lake
from queries.lake_upkeep import due, tidy

HEAD = (
    f"{'collectors':>10}{'spans/s':>10}{'median ms':>11}{'p99 ms':>8}{'CPU us/span':>13}{'read ms':>9}{'commit ms':>11}{'rounds':>8}"
    f"{'peak MiB':>10}{'bytes/span':>12}{'merged':>8}  held of acknowledged"
)


@contextlib.contextmanager
def collector(config: Path) -> Iterator[servers.Server]:
    """A running `leverwatch collect`."""
    ports = ("--port", "0", "--grpc-port", "0", "--otlp-http-port", "0")
    command = [sys.executable, "-m", "leverwatch.cli.main", "collect", "--config", str(config), "--format", "json", *ports]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    addresses = json.loads(process.stdout.readline())
    server = servers.Server(process, addresses["otlp_grpc"], addresses["url"])
    try:
        yield server
    finally:
        server.stop()


def rounds(server: servers.Server) -> dict[str, float]:
    """What a collector says of its rounds: how many, and the seconds that reading and committing took."""
    lines = httpx.get(f"{server.url}/metrics", timeout=30).text.splitlines()
    told = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line.startswith("leverwatch_collect_round")}
    name = "leverwatch_collect_round_seconds"
    return {
        "rounds": told[f'{name}_count{{part="read"}}'],
        "read_s": told[f'{name}_sum{{part="read"}}'],
        "commit_s": told[f'{name}_sum{{part="commit"}}'],
    }


def measured(args: argparse.Namespace, count: int, folder: Path) -> str:
    """One row: so many collectors."""
    config, lake = folder / "leverwatch.toml", Lake.open(str(folder / "lake"))
    config.write_text(f"[store]\nkind = 'delta'\nuri = 'lake'\ncommit_interval_s = {args.interval}\n", encoding="utf-8")
    with contextlib.ExitStack() as running:
        up = [running.enter_context(collector(config)) for _ in range(count)]
        used_s = sum(server.cpu_s() for server in up)
        sending = [
            servers.begin_sending(server, senders=args.senders // count, seconds=args.seconds, seed=n) for n, server in enumerate(up)
        ]
        found: list[dict[str, Any]] = [servers.outcome(one) for one in sending]
        told = [rounds(server) for server in up]
        used_s = sum(server.cpu_s() for server in up) - used_s
        peak_bytes = max(server.peak_bytes for server in up)
    acknowledged = sum(one["acknowledged"] for one in found)
    fresh_bytes = sum(file.bytes for file in lake.files("spans"))
    for hour in due(lake, "spans", datetime.now(UTC) + timedelta(days=1)):
        tidy(lake, "spans", hour)
    held = sum(file.rows for file in lake.files("spans"))
    count_rounds = sum(one["rounds"] for one in told)
    read_ms, commit_ms = (1e3 * sum(one[name] for one in told) / count_rounds for name in ("read_s", "commit_s"))
    median_ms, p99_ms = (max(one[name] for one in found) for name in ("median_ms", "p99_ms"))
    merged_bytes, cpu_us = sum(file.bytes for file in lake.files("spans")), used_s / acknowledged * 1e6
    return (
        f"{count:>10}{sum(one['spans_per_s'] for one in found):>10,.0f}{median_ms:>11.0f}{p99_ms:>8.0f}{cpu_us:>13.1f}"
        f"{read_ms:>9.0f}{commit_ms:>11.0f}{count_rounds:>8.0f}{peak_bytes / 2**20:>10.0f}{fresh_bytes / held:>12.0f}"
        f"{merged_bytes / held:>8.0f}  {held:,} of {acknowledged:,}"
    )


def main() -> None:
    """Measures, and prints a row for each number of collectors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--collectors", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--senders", type=int, default=32, help="of all collectors together")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each row")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds from one commit of a collector to its next")
    args = parser.parse_args()
    print(HEAD)
    for count in args.collectors:
        with tempfile.TemporaryDirectory() as folder:
            started = time.monotonic()
            print(measured(args, count, Path(folder)), f"({time.monotonic() - started:.0f} s in all)", flush=True)


if __name__ == "__main__":
    main()
