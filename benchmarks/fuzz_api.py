"""Made-up calls to every route of the API, many of them, over a store with made-up rows; prints what is not as described.

PYTHONPATH=tests python benchmarks/fuzz_api.py --examples 300
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import elsewhere_rooms
import openapi_fuzz

from dashboards.security import Headed


def main() -> int:
    """Status 1 where there is a fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=300, help="calls to each route, of either sort")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="a part of a route's name, such as '/api/report'")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, elsewhere_rooms.room(Path(folder)) as room:
        application = Headed(elsewhere_rooms.application(room))
        found = list(openapi_fuzz.faults(application, args.examples, first_seed=args.seed, only=args.only))
    for fault in found:
        print(" ".join(fault.split())[:600])
    print(f"{len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
