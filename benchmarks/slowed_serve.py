"""`leverwatch serve` whose loading is held down: after each batch the jobs wait as long as it takes to reach the asked share of its rate.

    python benchmarks/slowed_serve.py 0.1 serve --data DIR

The test switch of `overload.py`. It stands here and not in the product.
"""

from __future__ import annotations

import sys
import time

from collectors.load import Loader
from collectors.spool import Spool
from leverwatch.cli.main import main


def slow_down(share: float) -> None:
    """Makes every loader work at a share of its rate."""
    load_next = Loader.load_next

    def slowed(self: Loader, spool: Spool) -> int:
        started = time.monotonic()
        taken = load_next(self, spool)
        if taken:
            time.sleep((time.monotonic() - started) * (1 / share - 1))
        return taken

    Loader.load_next = slowed  # type: ignore[method-assign]


if __name__ == "__main__":
    slow_down(float(sys.argv.pop(1)))
    main()
