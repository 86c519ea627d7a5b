"""A made-up fleet's month in, how long a report from its cells takes out, and how far its percentiles are from exact ones.

    python benchmarks/cells.py --days 30 --segments 1000 --replicas 40

The days are written as rolling up leaves them: by replica, and of all replicas together; the weeks are rolled up. Reported are the three
metrics of the bar by model, hardware and input bucket. Prints the median of the runs, wall and processor time, and the largest error of a
percentile of the row whose values were kept.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from leverwatch import report_source
from pipeline.cell_bins import bin_of
from pipeline.metrics import chosen
from queries import cells_rolled
from queries.cells_rolled import SUMS
from queries.store import Store, Transaction

FIRST = datetime(2026, 10, 1, tzinfo=UTC)
METRICS = ("skipped_token_ratio", "ttft_s", "tpot_s")
KEYS = ("model", "hardware", "input_bucket")
MODELS, HARDWARE, BUCKETS = 10, 4, 5
TIERS = {"day": False, "fleet": True}
REQUESTS_A_REPLICA = 10  # of one segment in one day: 12 million a month


def main() -> None:
    """Fills a store and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--segments", type=int, default=1000)
    parser.add_argument("--replicas", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        exact = fill(store, args.days, args.segments, args.replicas)
        print(f"{args.days} days, {args.segments} segments x {args.replicas} replicas: {size(Path(folder)):.0f} MiB")
        wall, busy, frames = zip(*(asked(store, args.days) for _ in range(args.rounds)), strict=True)
        print(f"{len(frames[0])} rows, median of {args.rounds}: {1e3 * float(np.median(wall)):.0f} ms, best {1e3 * min(wall):.0f} ms")
        print(f"processor time of all threads: median {1e3 * float(np.median(busy)):.0f} ms")
        print(f"largest error of a percentile: {100 * error(frames[0], exact):.2f} %")
        store.close()


def fill(store: Store, days: int, segments: int, replicas: int) -> dict[str, npt.NDArray[np.float64]]:
    """Writes the cells; gives all values of ttft_s and tpot_s of one row of the report."""
    rng = np.random.default_rng(11)
    kept: dict[str, list[npt.NDArray[np.float64]]] = {"ttft_s": [], "tpot_s": []}
    with store.write() as transaction:
        _name(transaction, segments, replicas)
        _sum(transaction, days, replicas)
        for frame in _histograms(rng, days, segments, REQUESTS_A_REPLICA * replicas, kept):
            transaction.insert("fleet_histograms", frame)
        transaction.execute(
            "insert into cell_periods select distinct 'day', started_at, 'summed' from fleet_cells "
            "union all select 'hour', started_at + to_hours(h), 'summed' from (select distinct started_at from fleet_cells), range(24) t(h)"
        )
        transaction.execute("insert into cell_periods select distinct 'week', date_trunc('week', started_at), 'open' from fleet_cells")
    while cells_rolled.roll_next(store, FIRST + timedelta(days=days)):
        pass
    return {name: np.concatenate(values) for name, values in kept.items()}


def asked(store: Store, days: int) -> tuple[float, float, pl.DataFrame]:
    """The seconds that one report takes, on the wall and of processors, and the report."""
    began, busy = time.perf_counter(), time.process_time()
    question = report_source.from_cells(store, "cells", chosen(METRICS), KEYS, FIRST, FIRST + timedelta(days=days), None)
    assert question is not None
    frame = store.frame(question.sql, question.params)
    return time.perf_counter() - began, time.process_time() - busy, frame


def error(frame: pl.DataFrame, exact: dict[str, npt.NDArray[np.float64]]) -> float:
    """The largest relative error of the percentiles of the row whose values were kept."""
    row = frame.filter(model="model-0", hardware="gpu-0", input_bucket="bucket-0").to_dicts()[0]
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    found = [(row[f"{name}_{tag}"], float(np.quantile(values, share))) for name, values in exact.items() for tag, share in shares.items()]
    return max(abs(got / wanted - 1) for got, wanted in found)


def size(folder: Path) -> float:
    """MiB of the database file."""
    return sum(path.stat().st_size for path in folder.glob("live.duckdb*")) / 2**20


def _name(transaction: Transaction, segments: int, replicas: int) -> None:
    number = range(1, segments + 1)
    keys = {
        "model": [f"model-{n % MODELS}" for n in range(segments)],
        "hardware": [f"gpu-{n // MODELS % HARDWARE}" for n in range(segments)],
        "input_bucket": [f"bucket-{n // (MODELS * HARDWARE) % BUCKETS}" for n in range(segments)],
        "topology": [f"tp{n // (MODELS * HARDWARE * BUCKETS)}" for n in range(segments)],
    }
    transaction.insert("cell_segments", pl.DataFrame({"segment_id": number, "segment": [str(n) for n in number]} | keys))
    transaction.execute(
        "insert into cell_series select ((segment_id - 1) * $replicas + r)::integer, segment_id, '', '', 'replica-' || r, null, false "
        "from cell_segments, range(1, $replicas + 1) t(r) where segment_id > 0 "
        "union all select ($segments * $replicas + segment_id)::integer, segment_id, '', '', null, null, true from cell_segments "
        "where segment_id > 0",
        {"segments": segments, "replicas": replicas},
    )
    names = ("requests", *METRICS)
    transaction.insert("cell_metrics", pl.DataFrame({"metric_id": range(1, len(names) + 1), "metric": names}))


def _sum(transaction: Transaction, days: int, replicas: int) -> None:
    """Sums of whole tokens and of seconds, a row per series, day and metric."""
    sums = ", ".join(
        f"(n * (1 + hash(series_id, d, metric_id, {place}) % 1000 / 100))::double as {name}" for place, name in enumerate(SUMS[2:])
    )
    for tier, is_fleet in TIERS.items():
        count = REQUESTS_A_REPLICA * (replicas if is_fleet else 1)
        transaction.execute(
            f"insert into {tier}_cells select series_id, $first::timestamptz + to_days(d::integer), metric_id, n as known, n, {sums} "
            f"from (select series_id, d, metric_id, {count}::bigint as n from cell_series, range($days) t(d), cell_metrics "
            "where is_together = $together) order by 2, 3, 1",
            {"first": FIRST, "days": days, "together": is_fleet},
        )


def _histograms(
    rng: np.random.Generator, days: int, segments: int, count: int, kept: dict[str, list[npt.NDArray[np.float64]]]
) -> Iterator[pl.DataFrame]:
    """The fleet's bins of each day. The values of the segments of one row of the report are kept."""
    series = np.repeat(np.arange(segments), count)
    is_kept = series % (MODELS * HARDWARE * BUCKETS) == 0
    replicas = count // REQUESTS_A_REPLICA
    for day in range(days):
        for metric_id, (name, median_s) in enumerate((("ttft_s", 0.2), ("tpot_s", 0.02)), 3):
            values = median_s * np.exp(rng.normal(0, 0.6, len(series)))
            kept[name].append(values[is_kept])
            binned = pl.DataFrame({"series_id": series + segments * replicas + 1, "value": values}).with_columns(
                bin_of(pl.col("value")).alias("bin")
            )
            counted = binned.group_by("series_id", "bin").agg(pl.len().cast(pl.Int64).alias("n")).sort("series_id", "bin")
            packed = counted.group_by("series_id", maintain_order=True).agg(pl.col("bin").alias("bins"), pl.col("n").alias("counts"))
            moment = pl.lit(FIRST + timedelta(days=day)).cast(pl.Datetime("us", "UTC"))
            yield packed.with_columns(moment.alias("started_at"), pl.lit(metric_id, pl.Int16).alias("metric_id"))


if __name__ == "__main__":
    main()
