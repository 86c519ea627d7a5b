"""Overload: 64 senders flat out while loading is held to a tenth of its rate. Memory stays bounded, senders are told to slow down.

    python benchmarks/overload.py --senders 64 --seconds 60

Printed: the resident memory of the server and its children, at most over the run; how many exports were acknowledged, how many were told
to come later and whether they were told when; and, after a restart without the brake, that nothing acknowledged was lost.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import senders
import servers
import stored


def main() -> None:
    """Overloads, then prints what happened."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--senders", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--share", type=float, default=0.1, help="of its own rate, that loading is held to")
    parser.add_argument("--patience", type=float, default=600.0, help="how long to wait until all is stored, in seconds")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "data"
        ids = Path(name) / "ids"
        slowed = (sys.executable, str(servers.HERE / "slowed_serve.py"), str(args.share))
        with servers.leverwatch(folder, before=slowed) as server:
            time.sleep(3)  # its kernels come out of the cache
            found = servers.outcome(servers.begin_sending(server, senders=args.senders, seconds=args.seconds, ids=ids))
            waits_mib = server.backlog_bytes() / 2**20
        exports = found["acknowledged"] // senders.SPANS_A_BODY
        print(f"{args.senders} senders, {args.seconds:.0f} s: {exports:,} exports acknowledged ({found['spans_per_s']:,.0f} spans/s)")
        slowed_n, advised = found["slowed"], found["slowed_with_advice"]
        print(f"told to come later: {slowed_n:,}, with RetryInfo {advised:,}; failed otherwise: {found['failed']:,}")
        print(f"waiting in the spool at the end: {waits_mib:.0f} MiB")
        print(f"resident memory, server and children: {server.peak_bytes / 2**20:.0f} MiB at most")
        with servers.leverwatch(folder) as server:
            started = time.monotonic()
            spans, requests = server.wait_for(found["acknowledged"], args.patience)
            took_s = time.monotonic() - started
        print(f"restarted without the brake: {spans:,} spans and {requests:,} requests after {took_s:.0f} s")
        print(stored.held(folder, ids.read_bytes()))


if __name__ == "__main__":
    main()
