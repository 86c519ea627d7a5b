"""What `leverwatch work` costs with 1, 2 and 4 workers of Ray: processor seconds of all tasks, the driver's share, and the time it took.

    python benchmarks/ray_workers.py --hours 8 --requests 40000

A lake of that many hours, each of that many requests of one vLLM-like span (about 830 bytes in an export) on 8 replicas, two arms of a
lever. Each number of workers has the same raw tables anew, and nothing that a round before it left. `--rounds 2` takes the numbers in turn,
so that what else runs on the machine meets all of them.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import senders

from collectors.lake_batch import LakeReader
from collectors.lake_sink import LakeSink, Pace
from leverwatch import deployment
from leverwatch.config import Config
from leverwatch.store_settings import StoreConfig
from leverwatch.work_pool import Cluster
from leverwatch.work_settings import work_of
from leverwatch.working import Round, Working, utc_now
from queries.lake import Lake

BEGAN_NS = int(datetime(2026, 3, 2, tzinfo=UTC).timestamp()) * 10**9
HOUR_NS = 3600 * 10**9
REPLICAS = 8


def fill(folder: Path, hours: int, requests: int) -> None:
    """A lake with hours of spans, as collectors leave it."""
    rng = np.random.default_rng(7)
    sink = LakeSink(Lake.open(str(folder)), LakeReader(deployment.of(Config())), Pace(interval_s=0.01))
    total = hours * requests // senders.SPANS_A_BODY
    waiting = []
    for number in range(total):
        template = senders.Template(rng, senders.SPANS_A_BODY, f"bench-{number % REPLICAS}")
        at_ns = BEGAN_NS + number * hours * HOUR_NS // total
        waiting.append(sink.append("traces", "bench", at_ns + 10**9, template.fresh(rng, at_ns)[0]))
    for done in waiting:
        done.result(120)
    sink.close()


def worked(raw: Path, workers: int) -> tuple[Round, float]:
    """(what a round over the whole lake said, how long it took in seconds)."""
    with tempfile.TemporaryDirectory() as own:
        lake = Path(own) / "lake"
        shutil.copytree(raw, lake)
        work = work_of(Config(store=StoreConfig(kind="delta", uri=str(lake))), Path(own))
        pool = Cluster(None, workers)
        try:
            list(pool.run(warmed, [(number,) for number in range(workers)]))  # what workers import is no part of their tasks
            began_s = time.monotonic()
            done = Working(work, pool, utc_now).once(is_last=True)
            return done, time.monotonic() - began_s
        finally:
            pool.close()


def warmed(number: int) -> int:
    """Imports what tasks need, and waits until the other workers do so too."""
    import leverwatch.work_tasks  # noqa: F401

    time.sleep(2.0)
    return number


def main() -> None:
    """Prints a row a number of workers and round."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=int, default=8)
    parser.add_argument("--requests", type=int, default=40_000, help="of each hour")
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "raw"
        fill(raw, args.hours, args.requests)
        print("workers  tasks  tasks' CPU s  driver's CPU s  driver's share  seconds  requests  failed")
        for _ in range(args.rounds):
            for workers in map(int, args.workers.split(",")):
                done, took_s = worked(raw, workers)
                share = done.driver_cpu_s / (done.driver_cpu_s + done.tasks_cpu_s)
                print(
                    f"{workers:7}  {done.tasks:5}  {done.tasks_cpu_s:12.1f}  {done.driver_cpu_s:14.2f}  {share:14.1%}  {took_s:7.1f}  "
                    f"{done.requests:8,}  {len(done.failed):6}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
