"""The demo's scenarios in, the effects that shipped policies read of them out: the files that tests/test_demo_advice.py judges.

    PYTHONPATH=tests python benchmarks/store_advice.py --scenarios peak-only simpson

Each is told over the wire to the jobs of a server, half a minute to two minutes on one core. Without `--scenarios` all are, half an hour.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import msgspec
from demo_effects import History, asked, history, rounded
from demo_judged import span

from alerts import policy
from demo import scenarios

FOLDER = Path(__file__).parents[1] / "tests" / "golden" / "advice"
SEED = 1
LEVEL = 19


def main() -> None:
    """Plays the chosen scenarios, and writes what policies read of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", nargs="+", metavar="NAME", choices=scenarios.names(), default=scenarios.names())
    args = parser.parse_args()
    policies = policy.shipped()
    for name in args.scenarios:
        began_s, scenario = time.process_time(), scenarios.load(name)
        size = write(FOLDER, name, history(scenario, SEED, *span(scenario), policies))
        print(f"{name}: {size} bytes, {time.process_time() - began_s:.0f} s", flush=True)
    if set(args.scenarios) == set(scenarios.names()):
        (FOLDER / "asked.json").write_bytes(msgspec.json.format(msgspec.json.encode(asked(policies)), indent=1))


def write(folder: Path, name: str, found: History) -> int:
    """Writes a scenario's files; gives their bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    effects, settings = folder / f"{name}.parquet", folder / f"{name}.settings.parquet"
    rounded(found.effects).write_parquet(effects, compression="zstd", compression_level=LEVEL, statistics=False)
    found.settings.write_parquet(settings, compression="zstd", statistics=False)
    return effects.stat().st_size + settings.stat().st_size


if __name__ == "__main__":
    main()
