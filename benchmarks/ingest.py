"""Durable ingest beside Rotel: the same senders against `leverwatch serve` and against Rotel into its blackhole, in turn in one run.

    python benchmarks/ingest.py --senders 8 --seconds 60 --rounds 2

For each round: spans/s acknowledged, the server's CPU time a span, its memory at the peak, and, 10 s after the last acknowledgement, how
many of the acknowledged spans `spans` and `requests` hold. Rotel keeps nothing and syncs nothing; it is the measure of a fast receiver.
Senders and servers share the machine, so what the senders take is printed too.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import servers

GRACE_S = 10.0
WARM_S = 1.0
HEAD = (
    f"{'server':<11}{'spans/s':>10}{'median ms':>11}{'p99 ms':>9}{'CPU us/span':>13}{'peak MiB':>10}{'senders us/span':>17}  slowed, failed"
)


def measure(server: servers.Server, senders: int, seconds: float) -> dict[str, Any]:
    """Sends to a server; what was acknowledged and what it cost."""
    warm = servers.outcome(servers.begin_sending(server, senders=senders, seconds=WARM_S))
    used_s = server.cpu_s()
    found = servers.outcome(servers.begin_sending(server, senders=senders, seconds=seconds))
    found["server_cpu_s"] = server.cpu_s() - used_s
    found["ended"] = time.monotonic()
    found["warm"] = warm["acknowledged"]
    return found


def row(name: str, found: dict[str, Any], peak_bytes: int) -> str:
    """One line of the table."""
    spans = max(found["acknowledged"], 1)
    server_us, senders_us = found["server_cpu_s"] / spans * 1e6, found["sender_cpu_s"] / spans * 1e6
    return (
        f"{name:<11}{found['spans_per_s']:>10,.0f}{found['median_ms']:>11.1f}{found['p99_ms']:>9.1f}{server_us:>13.1f}"
        f"{peak_bytes / 2**20:>10.0f}{senders_us:>17.1f}  {found['slowed']:.0f}, {found['failed']:.0f}"
    )


def rotel_round(args: argparse.Namespace, folder: Path) -> float:
    """One round against Rotel; its spans/s."""
    with servers.rotel(folder) as server:
        found = measure(server, args.senders, args.seconds)
        print(row("rotel", found, server.peak_bytes), flush=True)
    return float(found["spans_per_s"])


def leverwatch_round(args: argparse.Namespace, folder: Path) -> float:
    """One round against Leverwatch, with the count of what it holds; its spans/s."""
    with servers.leverwatch(folder / "data") as server:
        time.sleep(3)  # its kernels come out of the cache
        found = measure(server, args.senders, args.seconds)
        print(row("leverwatch", found, server.peak_bytes), flush=True)
        sent = found["acknowledged"] + found["warm"]
        time.sleep(max(0.0, found["ended"] + GRACE_S - time.monotonic()))
        spans, requests = server.counts()
        print(f"  {GRACE_S:.0f} s after: {spans:,} spans and {requests:,} requests of {sent:,} acknowledged")
        if min(spans, requests) < sent:
            spans, requests = server.wait_for(sent, args.patience)
            waited_s = time.monotonic() - found["ended"]
            print(f"  {waited_s:.0f} s after: {spans:,} spans and {requests:,} requests of {sent:,} acknowledged")
        print(f"  {sent - spans:,} spans lost, {max(0, spans - sent):,} too many; peak at the end {server.peak_bytes / 2**20:.0f} MiB")
    return float(found["spans_per_s"])


def main() -> None:
    """Runs the rounds and prints their figures and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--senders", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each round")
    parser.add_argument("--rounds", type=int, default=2, help="against each server")
    parser.add_argument("--patience", type=float, default=300.0, help="how long to wait until all is stored, in seconds")
    parser.add_argument("--alone", action="store_true", help="without Rotel")
    args = parser.parse_args()
    print(HEAD)
    theirs, ours = [], []
    for _ in range(args.rounds):
        with tempfile.TemporaryDirectory() as folder:
            theirs += [] if args.alone else [rotel_round(args, Path(folder))]
            ours.append(leverwatch_round(args, Path(folder)))
    if theirs:
        ratio = statistics.mean(ours) / statistics.mean(theirs)
        print(f"{args.senders} senders, {args.seconds:.0f} s a round: {ratio:.2f} x Rotel")


if __name__ == "__main__":
    main()
