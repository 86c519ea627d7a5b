"""Weeks in which no lever does anything in, how often shipped policies advise to switch one out: the table of docs/statistics.md.

    PYTHONPATH=tests python benchmarks/calibrate_quiet.py --streams 200

`make calibrate` does that; a few minutes on one core. Promised are 0.02 flips a day and stream.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

from calibrate_table import header, row
from quiet_week import BLOCKS, BLOCKS_A_DAY, LEVERS, blocks, is_flip, judged, quiet

from alerts import policy

SEED = 40_000
NOISE = ((0.3, 0.03), (0.3, 0.1), (0.5, 0.05), (0.7, 0.05), (0.8, 0.05), (0.9, 0.05))
"""How alike an arm's level is in two blocks in a row, and how far it strays, as a ratio."""


def main() -> None:
    """Prints the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=200, help="of all levers together, for each kind of noise")
    args = parser.parse_args()
    policies = [one for one in policy.shipped() if one.lever in LEVERS]
    pairs = -(-args.streams // len(policies))
    head = (
        "neighbors alike by",
        "level strays by",
        "streams",
        "recommendations",
        "other flips",
        "flips a day and stream",
        "judged",
        "CPU s",
    )
    for line in header(*head):
        print(line)
    for alike, sd in NOISE:
        began_s, flips, verdicts = time.process_time(), Counter[str](), Counter[str]()
        for said in judged(policies, blocks(quiet(pairs, SEED, alike=alike, sd=sd))):
            verdicts[said.judgment.verdict] += 1
            if is_flip(said):
                flips[said.judgment.state] += 1
        recommended, streams = flips["off_recommended"], pairs * len(policies)
        rate = flips.total() / streams / (BLOCKS / BLOCKS_A_DAY)
        share = 1 - (verdicts["insufficient"] + verdicts["frozen"]) / verdicts.total()
        told = (f"{sd:.0%}", str(streams), str(recommended), str(flips.total() - recommended), f"{rate:.4f}", f"{share:.0%}")
        print(row(f"{alike:g}", *told, f"{time.process_time() - began_s:.0f}"), flush=True)


if __name__ == "__main__":
    main()
