"""`leverwatch work`: keeps a lake's requests, cells and effects up with its raw tables, in tasks that run beside each other."""

from __future__ import annotations

import argparse
import functools
import logging
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from leverwatch import config, work_app, work_upkeep, working
from leverwatch.cli import common
from leverwatch.observe import logs, starting
from leverwatch.observe.observer import Observer
from leverwatch.work_pool import Cluster, Here, Pool
from leverwatch.work_settings import work_of

log = logging.getLogger("leverwatch.work")


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    parser = subparsers.add_parser("work", help="make requests, cells and effects of a lake's spans, on one machine or a Ray cluster")
    parser.add_argument("--data", metavar="DIR", help="where leverwatch.toml lies and what is kept between rounds (default: as serve)")
    parser.add_argument("--config", metavar="FILE", help="leverwatch.toml (default: the one in the data folder)")
    parser.add_argument("--address", metavar="URI", help="a Ray cluster, such as ray://head:10001, or auto (default: a Ray of its own)")
    parser.add_argument(
        "--workers", type=_whole, metavar="N", help="workers of its own Ray (default: one a core); 0: no Ray, this process alone"
    )
    parser.add_argument("--once", action="store_true", help="one round that takes all there is as complete, then end")
    parser.add_argument("--every", type=_above_zero, default=60.0, metavar="SECONDS", help="from one round to the next (default: 60)")
    parser.add_argument(
        "--metrics-port", type=int, metavar="PORT", help="answer /metrics and /healthz there, on [serve] host (default: no port)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Works until it is told to stop; with --once status 1 says that a task failed."""
    folder = common.folder(args)
    read = config.read(Path(args.config) if args.config else None, folder)
    logs.set_up(read.observe)
    work = work_of(read, folder)
    observer = Observer()
    numbers = functools.partial(work_app.families, observer)
    listening = work_app.Listening(read, args.metrics_port, numbers) if args.metrics_port is not None else None
    observer.tracing = starting.started(read.observe, "work", numbers)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    pool: Pool = Here() if args.workers == 0 else Cluster(args.address, args.workers)
    try:
        worker = working.Working(work, pool, working.utc_now, _say, work_upkeep.limits(read.retention), observer)
        if listening is not None:
            _say(f"metrics    {listening.start()}/metrics")
        if args.once:
            done = worker.once(is_last=True)
            if done.is_nothing():
                _say("nothing to do: the lake has no spans that no round has seen")
            return 1 if done.failed else 0
        worker.forever(stop, args.every)
    finally:
        pool.close()
        if listening is not None:
            listening.stop()
        observer.tracing.close()
    return 0


def _whole(text: str) -> int:
    number = int(text)
    if number < 0:
        msg = f"{text}: 0 or more workers are taken"
        raise argparse.ArgumentTypeError(msg)
    return number


def _above_zero(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < threading.TIMEOUT_MAX:
        msg = f"{text}: seconds above 0 are taken"
        raise argparse.ArgumentTypeError(msg)
    return seconds


def _say(sentence: str) -> None:
    if logs.is_json():
        log.info(sentence)
        return
    sys.stdout.write(sentence + "\n")
    sys.stdout.flush()
