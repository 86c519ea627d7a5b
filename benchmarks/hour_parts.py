"""What an hour of a lake costs made by one task and made in parts: the most memory that any task holds, and processor seconds of all.

    PYTHONPATH=. python benchmarks/hour_parts.py --requests 1000000 --parts 1 4 16

One hour of vLLM-like spans (one a request, about 830 bytes in an export) on `--replicas` replicas of one model, two arms of a lever, its
small files merged. Every task runs in a process of its own that has made a small hour before, so that all is imported and compiled; what
such a process holds is printed first.
"""

from __future__ import annotations

import argparse
import dataclasses
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import ray_workers

from leverwatch.config import Config
from leverwatch.store_settings import StoreConfig
from leverwatch.work_hours import Hours
from leverwatch.work_pool import Here, Outcome
from leverwatch.work_settings import work_of
from leverwatch.work_tasks import Work
from pipeline import settle
from queries import lake_upkeep

HOUR = datetime.fromtimestamp(ray_workers.BEGAN_NS / 1e9, UTC)


class Apart:
    """A pool that runs each task in a new process, one after the other, and keeps what the largest held."""

    workers = 1

    def __init__(self, small: Work) -> None:
        self._small = small
        self.peak_bytes = 0
        self.tasks = 0

    def run(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Iterator[Outcome]:
        """Runs a function with each of some tuples of arguments, in order."""
        for task in tasks:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                answer, peak_bytes = pool.apply(measured, (self._small, function, task))
            self.peak_bytes, self.tasks = max(self.peak_bytes, peak_bytes), self.tasks + 1
            yield Outcome(task, answer)

    def close(self) -> None:
        """Nothing is held."""


def measured(small: Work, function: Callable[..., Any], task: tuple[Any, ...]) -> tuple[Any, int]:
    """(what a task gives, the most memory that its process held)."""
    for _ in Hours(dataclasses.replace(small, part_spans=300), Here(), settle.NEVER, print, lambda _: None).made([HOUR]):
        pass
    answer = function(*task)
    held = next(line for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))
    return answer, 1024 * int(held.split()[1])


def nothing() -> None:
    """Does nothing."""


def filled(folder: Path, requests: int) -> Work:
    """A lake with an hour of requests, and what tasks on it go by."""
    ray_workers.fill(folder / "lake", 1, requests)
    return work_of(Config(store=StoreConfig(kind="delta", uri=str(folder / "lake"))), folder)


def main() -> None:
    """Prints a row a number of parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--replicas", type=int, default=64)
    parser.add_argument("--parts", type=int, nargs="+", default=[1, 4, 16])
    args = parser.parse_args()
    ray_workers.REPLICAS = args.replicas
    with tempfile.TemporaryDirectory(prefix="leverwatch-") as name:
        folder = Path(name)
        small, work = (filled(folder / str(requests), requests) for requests in (1024, args.requests))
        lake = work.lake()
        for hour in lake_upkeep.due(lake, "spans", HOUR.replace(year=HOUR.year + 1)):
            lake_upkeep.tidy(lake, "spans", hour)
        spans = sum(file.rows for file in lake.files("spans"))
        empty = Apart(small)
        list(empty.run(nothing, [()]))
        small_mib = empty.peak_bytes / 2**20
        print(f"{spans:,} spans in {len(lake.files('spans'))} files; a process that has made a small hour holds {small_mib:.0f} MiB")
        print("| parts | tasks | largest task, MiB | CPU seconds of all tasks | seconds, one after the other | requests |")
        for parts in args.parts:
            pool, used_s = Apart(small), list[float]()
            hours = Hours(dataclasses.replace(work, part_spans=-(-spans // parts)), pool, settle.NEVER, print, used_s.append)
            began_s = time.monotonic()
            told = list(hours.made([HOUR]))
            took_s = time.monotonic() - began_s
            requests = sum(one.requests for one in told)
            print(
                f"| {parts} | {pool.tasks} | {pool.peak_bytes / 2**20:,.0f} | {sum(used_s):.1f} | {took_s:.0f} | {requests:,} |", flush=True
            )


if __name__ == "__main__":
    main()
