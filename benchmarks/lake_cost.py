"""What a span and a request cost where tables are a lake: processor time of a collector, of a reader of Kafka, of a worker, and bytes kept.

    python benchmarks/lake_cost.py --seconds 20

A collector gets spans over gRPC from the load generator of `senders.py`; then a worker makes requests and cells of them in one round. The
Kafka figure is that of `KafkaLake` alone, given bodies as a topic would hold them, without the client's own cost. The lake is a folder,
so an object store's calls are not in it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import servers
from senders import SPANS_A_BODY, Template

from collectors.deployed import Deployed
from collectors.kafka_lake import KafkaLake
from collectors.kafka_progress import Arrived, Place
from collectors.lake_batch import LakeReader
from collectors.lake_sink import Pace
from queries.lake import Lake

COMMAND = [sys.executable, "-m", "leverwatch.cli.main"]


def config(folder: Path) -> Path:
    """A configuration whose lake lies in a folder."""
    path = folder / "leverwatch.toml"
    path.write_text(f'[store]\nkind = "delta"\nuri = "{folder}/lake"\n', encoding="utf-8")
    return path


def collected(folder: Path, seconds: float, senders: int) -> tuple[int, float, float]:
    """Acknowledged spans, spans a second, and a collector's processor seconds."""
    words = [
        *COMMAND,
        "collect",
        "--config",
        str(config(folder)),
        "--port",
        "0",
        "--grpc-port",
        "0",
        "--otlp-http-port",
        "0",
        "--format",
        "json",
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["otlp_grpc"]
        before_s = servers.cpu_s(process.pid)
        found = servers.outcome(servers.begin_sending(address, senders=senders, seconds=seconds, lever="speculation"))
        used_s = servers.cpu_s(process.pid) - before_s
        process.terminate()
        process.wait(60)
    return int(found["acknowledged"]), found["spans_per_s"], used_s


def worked(folder: Path) -> tuple[int, float, int]:
    """Requests, the processor seconds of the tasks that make all there is of a lake's spans, and the most memory that took."""
    words = [*COMMAND, "work", "--once", "--workers", "0", "--config", str(config(folder)), "--data", str(folder / "work")]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    said = re.search(r"hours, ([\d,]+) requests.*tasks took ([\d.]+) s", told)
    assert said, told
    peak_bytes = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # of the largest child: the load generator is smaller
    return int(said[1].replace(",", "")), float(said[2]), peak_bytes


def read(folder: Path, bodies: int) -> tuple[int, float]:
    """Spans, and the processor seconds that it takes to store them as messages of a topic."""
    rng = np.random.default_rng(1)
    template = Template(rng, SPANS_A_BODY, "bench-0")
    messages = [
        Arrived(Place("spans", number % 4), number, "traces", bytes(template.fresh(rng, time.time_ns())[0])) for number in range(bodies)
    ]
    store = KafkaLake(Lake.open(str(folder / "topic")), LakeReader(Deployed()), "g", "otlp_proto", lambda _, why: print(why), Pace())
    asyncio.run(store.take(messages[:8]))
    before_s = time.process_time()
    answers = asyncio.run(store.take(sorted(messages[8:], key=lambda one: one.place)))
    assert all(answer.outcome == "taken" for answer in answers)
    return (bodies - 8) * SPANS_A_BODY, time.process_time() - before_s


def kept_bytes(folder: Path, table: str) -> int:
    """What a table's files take."""
    return sum(path.stat().st_size for path in (folder / "lake" / table).rglob("*.parquet"))


def main() -> None:
    """Measures, and prints a line each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--senders", type=int, default=64)
    parser.add_argument("--bodies", type=int, default=400)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="leverwatch-") as name:
        folder = Path(name)
        spans, rate, used_s = collected(folder, args.seconds, args.senders)
        print(f"collector: {spans:,} spans, {rate:,.0f} a second, {1e6 * used_s / spans:.1f} us of processor a span")
        print(f"  {kept_bytes(folder, 'spans') / spans:.0f} bytes a span before compaction")
        requests, task_s, peak_bytes = worked(folder)
        print(f"worker: {requests:,} requests, {1e6 * task_s / requests:.1f} us of processor a request")
        print(f"  {peak_bytes / 2**20:.0f} MiB at most")
        print(f"  {kept_bytes(folder, 'requests') / requests:.0f} bytes a request")
        spans, used_s = read(folder, args.bodies)
        print(f"reader of Kafka: {spans:,} spans, {1e6 * used_s / spans:.1f} us of processor a span")


if __name__ == "__main__":
    main()
