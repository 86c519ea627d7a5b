"""How long the jobs take over a minute of new data, beside a history and beside one ten times as long.

    python benchmarks/keeping_up.py --hours 2 --rate 40

Two data folders are filled through the whole pipeline, from export bodies on; then both get the same new minutes, in turn, each worked
off until nothing waits. What new data costs has to be independent of history: the ratio of the medians is to be 1.1 at most.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import senders

from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom

REPLICAS, ARM = 8, "leverwatch.arm.speculation"
SPANS_A_BODY = 256
START_NS = 1_780_000_200_000_000_000  # a whole hour
MINUTE_NS = 60_000_000_000


class Fleet:
    """Export bodies of a small fleet, one request a span; one replica is control."""

    def __init__(self, rate_per_s: float, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._bodies_a_minute = max(1, round(rate_per_s * 60 / SPANS_A_BODY))
        self._templates = [
            senders.Template(self._rng, SPANS_A_BODY, f"replica-{number}", **{ARM: "control" if number == 0 else "treated"})
            for number in range(REPLICAS)
        ]

    def minute(self, number: int) -> list[bytes]:
        """The bodies of one minute."""
        every_ns = MINUTE_NS // self._bodies_a_minute
        began_ns = START_NS + number * MINUTE_NS
        turns = range(self._bodies_a_minute)
        return [self._templates[(number + turn) % REPLICAS].fresh(self._rng, began_ns + (turn + 1) * every_ns)[0] for turn in turns]


def put(room: EngineRoom, number: int, bodies: list[bytes]) -> None:
    """Puts a minute's bodies into the spool, as if they arrived at its end."""
    arrived_ns = START_NS + (number + 1) * MINUTE_NS
    for turn, body in enumerate(bodies):
        room.spool.append("traces", f"sender-{turn % REPLICAS}", arrived_ns, body).result(30)


def filled(folder: Path, minutes: int, fleet: Fleet) -> EngineRoom:
    """A data folder with so many minutes of history."""
    config = Config()
    room = EngineRoom(folder, config)
    for number in range(minutes):
        put(room, number, fleet.minute(number))
        if number % 5 == 4:
            room.drain()
    room.drain()
    return room


def worked_s(room: EngineRoom, number: int, bodies: list[bytes]) -> float:
    """Seconds that the jobs take over one new minute."""
    put(room, number, bodies)
    started = time.perf_counter()
    room.drain()
    return time.perf_counter() - started


def main() -> None:
    """Fills both, works new minutes off in turn, and prints the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=2.0, help="the short history; the long one is ten times as long")
    parser.add_argument("--rate", type=float, default=40.0, help="requests a second")
    parser.add_argument("--minutes", type=int, default=30, help="new minutes")
    parser.add_argument("--folder", type=Path, help="where the data folders are made; default: a temporary one")
    args = parser.parse_args()
    short, long = round(args.hours * 60), round(args.hours * 600)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        started = time.perf_counter()
        rooms = [
            (filled(Path(folder) / "short", short, Fleet(args.rate, 1)), short),
            (filled(Path(folder) / "long", long, Fleet(args.rate, 1)), long),
        ]
        print(f"filled {short} and {long} minutes in {time.perf_counter() - started:.0f} s")
        new = Fleet(args.rate, 2)
        taken: tuple[list[float], list[float]] = ([], [])
        for number in range(args.minutes):
            for place in (0, 1) if number % 2 else (1, 0):
                room, minutes = rooms[place]
                taken[place].append(worked_s(room, minutes + number, new.minute(minutes + number)))
        short_s, long_s = (statistics.median(some) for some in taken)
        held = [room.store.rows("select count(*) as requests, (select count(*) from parts) as parts from requests")[0] for room, _ in rooms]
        for room, _ in rooms:
            room.close()
    print(f"short history: {held[0]}: {1000 * short_s:.1f} ms a minute of new data, mean {1000 * statistics.fmean(taken[0]):.1f}")
    print(f"long history:  {held[1]}: {1000 * long_s:.1f} ms a minute of new data, mean {1000 * statistics.fmean(taken[1]):.1f}")
    print(f"ratio of medians: {long_s / short_s:.3f} (bar: 1.1), of means: {statistics.fmean(taken[1]) / statistics.fmean(taken[0]):.3f}")


if __name__ == "__main__":
    main()
