"""`leverwatch serve` whose loading is held down: after each batch the jobs wait as long as it takes to reach the asked share of its rate.

    python benchmarks/slowed_serve.py 0.1 serve --data DIR

The test switch of `overload.py`. It stands here and not in the product.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from collectors.load import Loader
from collectors.spool import Spool
from leverwatch.cli.main import main


def slow_down(share: float) -> None:
    """Makes every loader work at a share of its rate; what is read ahead by its second thread counts as its work."""
    load_next, prepared = Loader.load_next, Loader._prepared
    ahead_s: list[float] = []

    def timed(self: Loader, *asked: Any) -> Any:
        started = time.monotonic()
        ready = prepared(self, *asked)
        if threading.current_thread().name.startswith("load-ahead"):
            ahead_s.append(time.monotonic() - started)
        return ready

    def slowed(self: Loader, spool: Spool) -> int:
        started = time.monotonic()
        taken = load_next(self, spool)
        worked_s = time.monotonic() - started + sum(ahead_s)
        ahead_s.clear()
        if taken:
            time.sleep(worked_s * (1 / share - 1))
        return taken

    Loader._prepared = timed  # type: ignore[method-assign]
    Loader.load_next = slowed  # type: ignore[method-assign]


if __name__ == "__main__":
    slow_down(float(sys.argv.pop(1)))
    main()
