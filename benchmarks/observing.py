"""What Leverwatch's own spans and metrics cost it: the same senders against servers that tell nobody, and that tell Rotel, in turn.

    python benchmarks/observing.py --seconds 10 --rounds 3

`off` is the default; `on` gives 1 % of the exports a span, as is the default where an endpoint is named; `every` gives each of them one.
For each: spans/s acknowledged and the server's CPU time a span, and at the end the medians as ratios to `off`. Rotel drops what it gets;
it takes processor time of the same machine. First of all what one export of 512 spans costs the door more, in
processor time of its thread, which other work on the machine does not change much.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import ingest
import numpy as np
import senders
import servers

from collectors import own
from collectors.door import Handled
from leverwatch.observe import starting
from leverwatch.observe.observer import Observer
from leverwatch.observe_settings import Observe

WAYS = {"off": None, "on": "0.01", "every": "1"}
PREFIX = "LEVERWATCH_OBSERVE_"


def one(way: str, endpoint: str, args: argparse.Namespace, folder: Path) -> tuple[float, float]:
    """One round of one way; its spans/s and CPU seconds a span."""
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]
    if WAYS[way] is not None:
        settings = {"ENDPOINT": f"http://{endpoint}", "EXPORT_RATIO": WAYS[way], "METRICS_INTERVAL_S": "5"}
        os.environ.update({f"{PREFIX}{name}": str(value) for name, value in settings.items()})
    with servers.leverwatch(folder / "data") as server:
        time.sleep(3)  # its kernels come out of the cache
        found = ingest.measure(server, args.senders, args.seconds)
        print(ingest.row(way, found, server.peak_bytes), flush=True)
    return float(found["spans_per_s"]), found["server_cpu_s"] / max(found["acknowledged"], 1)


def door(endpoint: str) -> str:
    """What counting, looking for own spans, and a span an export cost, in microseconds of processor time."""
    body = senders.marked_body(np.random.default_rng(0), 512, "r")
    handled = Handled("traces", "taken", 512, len(body), 0.01)
    costs = {"looking for own spans": _cost_us(lambda: own.cut(body))}
    counting = Observer()
    costs["counting"] = _cost_us(lambda: counting.handled(handled))
    for ratio in (0.01, 1.0):
        asked = Observe(endpoint=f"http://{endpoint}", export_ratio=ratio, metrics=False)
        observer = Observer(tracing=starting.started(asked, "serve", tuple))
        costs[f"counting, and a span for {ratio:.0%}"] = _cost_us(lambda observer=observer: observer.handled(handled))
        observer.tracing.close()
    return "; ".join(f"{what} {cost_us:.1f} us" for what, cost_us in costs.items())


def _cost_us(call: Callable[[], object], times: int = 20_000) -> float:
    began_s = time.thread_time()
    for _ in range(times):
        call()
    return (time.thread_time() - began_s) / times * 1e6


def main() -> None:
    """Runs the rounds and prints the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--senders", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each round")
    parser.add_argument("--rounds", type=int, default=3, help="of each way")
    args = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as beside, servers.rotel(Path(beside)) as backend:
        print(f"an export at the door: {door(backend.grpc)}")
        print(ingest.HEAD)
        for number in range(args.rounds):
            order = list(WAYS)[number % len(WAYS) :] + list(WAYS)[: number % len(WAYS)]
            for way in order:
                with tempfile.TemporaryDirectory() as folder:
                    found[way].append(one(way, backend.grpc, args, Path(folder)))
    for place, what in enumerate(("spans/s", "CPU a span")):
        medians = {way: statistics.median(pair[place] for pair in pairs) for way, pairs in found.items()}
        print(f"{what}: " + ", ".join(f"{way} {median / medians['off']:.3f} of off" for way, median in medians.items() if way != "off"))


if __name__ == "__main__":
    main()
