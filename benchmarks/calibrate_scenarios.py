"""The demo's scenarios and a number of seeds in, the table of docs/statistics.md out: which harm is found in time, and who is accused.

    PYTHONPATH=tests python benchmarks/calibrate_scenarios.py --seeds 20 --out scenarios.json

`make calibrate` does that; about two hours on one core. `--out` is written play by play, and what is in it is not played again, so that a
run that was cut goes on. `--scenarios` chooses some; `--store DIR` writes their cells, as tests/test_demo_found.py reads them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from demo_plays import Play, plays
from demo_trial import Fared, trial
from demo_watch import watch
from scenario_table import told

from demo import scenarios


class Result(msgspec.Struct, frozen=True):
    """How the streams of one play fared, and the CPU seconds that it took."""

    play: str
    seed: int
    cpu_s: float
    streams: list[Fared]


def main() -> None:
    """Plays what is left to be played, and prints the table of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--scenarios", nargs="+", metavar="NAME", choices=scenarios.names(), default=scenarios.names())
    parser.add_argument("--out", type=Path, default=Path("scenarios.json"), help="results so far, read and written")
    parser.add_argument("--store", type=Path, metavar="DIR", help="write the cells of seed 1 as Parquet into this folder, and stop")
    args = parser.parse_args()
    chosen = [play for name in args.scenarios for play in plays(scenarios.load(name))]
    if args.store:
        for play in chosen:
            _store(play, args.store)
        return
    args.out.parent.mkdir(parents=True, exist_ok=True)
    results = msgspec.json.decode(args.out.read_bytes(), type=list[Result]) if args.out.exists() else []
    for result in _played(chosen, args.seeds, {(one.play, one.seed) for one in results}):
        results.append(result)
        beside = args.out.with_suffix(".part")
        beside.write_bytes(msgspec.json.encode(results))
        beside.replace(args.out)
    for line in told(chosen, [one for one in results if one.seed <= args.seeds]):
        print(line)


def _played(chosen: list[Play], seeds: int, known: set[tuple[str, int]]) -> Iterator[Result]:
    """The plays that are not known yet, seed by seed."""
    for seed in range(1, seeds + 1):
        for play in chosen:
            if (play.name, seed) in known:
                continue
            began_s = time.process_time()
            cells = play.cells(seed)
            streams = trial(play.scenario, cells, watch(cells), is_twin=play.is_twin)
            result = Result(play.name, seed, time.process_time() - began_s, streams)
            print(f"{play.name}, seed {seed}: {result.cpu_s:.1f} s", flush=True)
            yield result


def _store(play: Play, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    cells = play.stored(1)
    path = folder / f"{play.name}.parquet"
    cells.write_parquet(path, compression="zstd", compression_level=19)
    print(f"{path}: {len(cells)} rows, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
