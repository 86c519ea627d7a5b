"""What a span and a request take on disk: bytes of the part files over their rows, once everything is sealed and compacted.

    python benchmarks/disk.py --spans 400000

Spans of 20 attributes (about 830 bytes in an export), none like another: random ids, times, latencies with all their digits and token
counts, ten strings of small vocabularies; each is a request of its own. They are loaded twice into stores of their own: in large batches,
which become part files at once, and in small ones, which are sealed out of the hot tables.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import senders

from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom

AGE_NS = 50 * 3600 * 10**9  # old enough to be sealed and compacted
QUIET_ROUNDS = 5
RUSH, TRICKLE = 64, 4  # exports of 512 spans that wait for the loader together
PARTS = (
    'select relation, level, count(*)::bigint as files, sum("rows")::bigint as rows_n, sum(bytes)::bigint as bytes_n '
    "from parts group by all order by all"
)
HOT = "select (select count(*) from spans_hot) as spans, (select count(*) from requests_hot) as requests"


def fill(folder: Path, spans: int, at_once: int) -> EngineRoom:
    """A store with that many spans, sealed."""
    rng = np.random.default_rng(7)
    room = EngineRoom(folder, Config())
    since_ns = time.time_ns() - AGE_NS
    since_ns -= since_ns % (3600 * 10**9) - 10**9 * 60
    total = spans // senders.SPANS_A_BODY
    for start in range(0, total, at_once):
        for number in range(start, min(total, start + at_once)):
            template = senders.Template(rng, senders.SPANS_A_BODY, f"bench-{number % 8}")
            body, _ = template.fresh(rng, since_ns + number * 10**9 * 3000 // total)
            room.spool.append("traces", "bench", time.time_ns(), body).result(30)
        room.drain()
    template = senders.Template(rng, 1, "bench-0")
    room.spool.append("traces", "bench", time.time_ns(), template.fresh(rng, time.time_ns())[0]).result(30)
    quiet = 0
    while quiet < QUIET_ROUNDS:  # compaction works beside the rounds
        quiet = 0 if room.work_once() + room.house.compactor.step(room.clock()) else quiet + 1
        time.sleep(0.3)
    return room


def main() -> None:
    """Loads, seals, and prints the sizes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--spans", type=int, default=400_000)
    args = parser.parse_args()
    print(f"{'batches':<9}{'relation':<10}{'level':>6}{'files':>7}{'rows':>11}{'bytes a row':>13}")
    for name, at_once in (("large", RUSH), ("small", TRICKLE)):
        with tempfile.TemporaryDirectory() as folder:
            room = fill(Path(folder) / "data", args.spans, at_once)
            for row in room.store.rows(PARTS):
                size = row["bytes_n"] / row["rows_n"]
                print(f"{name:<9}{row['relation']:<10}{row['level']:>6}{row['files']:>7}{row['rows_n']:>11,}{size:>13.1f}", flush=True)
            hot = room.store.rows(HOT)[0]
            room.close()
            print(f"{name:<9}not sealed: {hot['spans']:,} spans, {hot['requests']:,} requests")


if __name__ == "__main__":
    main()
