"""The fuzzer of the trace decoder: odd bodies of recorded and generated exports, held against the reference protobuf parser.

    python benchmarks/fuzz.py --minutes 60 --recordings ../shared/data/otlp

Each round takes a seed of its own, so that a disagreement can be made again with `--seed N --rounds 1`. Every body's verdict and every
value of every sound body must be the reference parser's, and the loader must store each good span of a batch once, whatever stands beside
it. It ends at the first disagreement, with status 1 and the body in hexadecimal. A crash of the interpreter ends it too.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import collectors_fuzz
from collectors_fuzz_bodies import Breaker
from collectors_fuzz_corpus import corpus

BATCHES_A_ROUND = 25
SAY_EVERY_S = 60.0


def main() -> int:
    """Runs until the time is up; gives the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, help="at most")
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--recordings", type=Path, help="a folder of recorded exports")
    args = parser.parse_args()
    logging.disable(logging.WARNING)  # what is odd about these spans is known
    bodies = corpus(args.recordings)
    print(f"{len(bodies)} bodies to start from", flush=True)
    started = said = time.monotonic()
    made = sound = 0
    seed = args.seed
    while time.monotonic() - started < args.minutes * 60 and (args.rounds is None or seed < args.seed + args.rounds):
        try:
            more_made, more_sound = collectors_fuzz.run(Breaker(bodies, seed), BATCHES_A_ROUND)
        except collectors_fuzz.DisagreementError as error:
            print(f"seed {seed}: {error}")
            return 1
        made, sound, seed = made + more_made, sound + more_sound, seed + 1
        if time.monotonic() - said > SAY_EVERY_S:
            said = time.monotonic()
            print(f"{(said - started) / 60:.0f} min: {made:,} bodies, {sound:,} of them sound, next seed {seed}", flush=True)
    print(f"{(time.monotonic() - started) / 60:.1f} min: {made:,} bodies, {sound:,} of them sound; no disagreement")
    return 0


if __name__ == "__main__":
    sys.exit(main())
