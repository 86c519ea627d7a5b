"""One request at a time against an idle `leverwatch serve`: how long until the acknowledgement, which means that it is on disk.

    python benchmarks/idle.py --seconds 15

One sender over one connection, one span an export, 50 ms between them; then the same with 512 spans an export.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import servers

PAUSE_S = 0.05


def main() -> None:
    """Measures and prints the delays."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=15.0, help="for each size")
    args = parser.parse_args()
    print(f"{'spans an export':>15}{'exports':>9}{'median ms':>11}{'p99 ms':>9}")
    with tempfile.TemporaryDirectory() as folder, servers.leverwatch(Path(folder) / "data") as server:
        time.sleep(3)  # its kernels come out of the cache
        for spans in (1, 512):
            found = servers.outcome(servers.begin_sending(server, senders=1, spans=spans, seconds=args.seconds, pause=PAUSE_S))
            print(f"{spans:>15}{found['acknowledged'] // spans:>9}{found['median_ms']:>11.1f}{found['p99_ms']:>9.1f}", flush=True)


if __name__ == "__main__":
    main()
