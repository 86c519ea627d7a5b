"""The report over 10 M requests, six keys, three metrics with exact percentiles, beside ClickHouse's engine over the same files.

    pip install chdb
    python benchmarks/report.py --keep /tmp/report-data --rounds 5

The folder is filled once (`report_rows.py`: 48 hours, a part each) and kept where `--keep` says. Both sides are asked in turn, with nothing
cached between rounds but the file system's pages and what a running server would hold; both give the ratio, percentiles, n and coverage.
Ours gives where each number came from, too; `chdb` is not asked for that. Wall time and CPU time are printed, and the ratios of medians,
for three sets of six keys that make few and many segments. `sql` is ours too, with DuckDB adding up: how far its engine alone would come.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import report_rows
from chdb import session

import leverwatch.local
from pipeline import tally

KEYS = (
    "model,hardware,topology,engine,engine_version,outcome",  # 48 segments
    "model,hardware,topology,input_bucket,temperature_bucket,outcome",  # 240
    "model,hardware,topology,input_bucket,tenant,temperature_bucket",  # 1,200
)
METRICS = "skipped_token_ratio,ttft_s,tpot_s"
THEIRS = """
select {keys}, count() as requests,
    sumIf(cached_tokens, prompt_tokens > 0 and cached_tokens is not null) / sumIf(prompt_tokens, prompt_tokens > 0 and cached_tokens is not null),
    countIf(prompt_tokens > 0 and cached_tokens is not null), countIf(prompt_tokens is not null and cached_tokens is not null) / count(),
    quantilesExact(0.5, 0.95, 0.99)(ttft_s), count(ttft_s), count(ttft_s) / count(),
    sumIf(decode_s, output_tokens >= 2) / sumIf(output_tokens - 1, output_tokens >= 2 and decode_s is not null),
    quantilesExact(0.5, 0.95, 0.99)(tpot_s),
    countIf(output_tokens >= 2 and decode_s is not null), countIf(output_tokens is not null and decode_s is not null) / count()
from file('{files}', Parquet) group by {keys} order by requests desc
"""  # noqa: E501


def timed(ask: Callable[[], object]) -> tuple[float, float]:
    """Seconds that an answer took: by the clock, and of CPU."""
    before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    ask()
    wall_s, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(folder: Path, rounds: int, keys: str, theirs: session.Session) -> None:
    """Asks both sides in turn, and prints each round and the ratios."""
    files = folder / "parts" / "requests" / "*.parquet"
    question = THEIRS.format(keys=keys, files=files)
    with leverwatch.connect(folder) as ours:
        asked = {
            "leverwatch": lambda: ours.report(by=keys, metrics=METRICS),
            "sql": lambda: _by_sql(ours, keys),
            "chdb": lambda: theirs.query(question, "Arrow"),
        }
        segments = {len(ours.report(by=keys, metrics=METRICS)), len(_by_sql(ours, keys)), theirs.query(question, "ArrowTable").num_rows}
        took: dict[str, list[tuple[float, float]]] = {name: [] for name in asked}
        for _ in range(rounds):
            for name, ask in asked.items():
                took[name].append(timed(ask))
                print(f"{name:<12}{took[name][-1][0]:>8.2f} s{took[name][-1][1]:>8.2f} s of CPU", flush=True)
    wall, cpu = ({name: statistics.median(one[part] for one in times) for name, times in took.items()} for part in (0, 1))
    print(
        f"{' or '.join(f'{count:,}' for count in segments)} segments by {keys}; medians: "
        + ", ".join(f"{name} {wall_s:.2f} s" for name, wall_s in wall.items())
    )
    for name in ("leverwatch", "sql"):
        print(f"{name} / chdb {wall[name] / wall['chdb']:.2f}; of CPU time {cpu[name] / cpu['chdb']:.2f}", flush=True)


def _by_sql(ours: leverwatch.local.Local, keys: str) -> pl.DataFrame:
    least, tally.MIN_ROWS = tally.MIN_ROWS, 1 << 62
    try:
        return ours.report(by=keys, metrics=METRICS)
    finally:
        tally.MIN_ROWS = least


def main() -> None:
    """Fills a folder, unless it is there, and compares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--requests", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where the data is, or is to stay")
    parser.add_argument("--by", action="append", metavar="KEY,...", help="keys, instead of three sets of six")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or Path(scratch) / "data"
        if not (folder / "live.duckdb").exists():
            report_rows.fill(folder, args.requests)
        theirs = session.Session()
        for keys in args.by or KEYS:
            compare(folder, args.rounds, keys, theirs)


if __name__ == "__main__":
    main()
