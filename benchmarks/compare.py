"""What comparing arms costs a block: `effects` beside one pair after another, and the whole job over a store of many segments.

    PYTHONPATH=tests python benchmarks/compare.py --pairs 10000 --segments 1000 --replicas 40

A pair is a lever in a segment. The effects of some pairs are made both ways in one run, as arrays and as tests/compare_reference.py does,
and the ratio is given; those of all pairs as arrays alone. Then blocks close one by one in a store whose segments have both arms, and each
run of the job is timed, with the rows that a segment gets of a block.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from pipeline import compare, jobs, settle
from queries.store import Store

UNTIL = datetime(2026, 11, 29, 12, tzinfo=UTC)
BLOCK, WINDOW = timedelta(minutes=5), compare.WINDOW_BLOCKS
BOTH = ("requests", "tpot_s", "ttft_s", "error_rate", "e2e_s", "queue_s")
ALONE = (
    "draft_acceptance", "acceptance_length", "conditional_acceptance_at_2", "skipped_token_ratio", "cache_hit_rate", "batch_at_admission",
    "kv_usage", "preemptions_per_1k_requests", "queue_share", "prefill_share", "concurrency", "affinity_load_spread",
)  # fmt: skip
BINNED = ("tpot_s", "ttft_s", "e2e_s")
BINS = 40


def segment(number: int) -> str:
    """A judging segment's text, as long as real ones are."""
    model = f"llama-3.3-70b-instruct-{number // 7}"
    return f'{{"hardware":"h100","input_bucket":"<{512 << number % 7}","model":"{model}","temperature_bucket":"<0.3","topology":"tp4"}}'


def cells(pairs: int) -> pl.DataFrame:
    """A window's cells of so many pairs, replicas summed, in no order; with the store's numbers."""
    drawn, count = np.random.default_rng(1), pairs * WINDOW
    starts = pl.Series([UNTIL - BLOCK * (WINDOW - number) for number in range(WINDOW)], dtype=pl.Datetime("us", "UTC"))
    names = pl.Series([segment(number) for number in range(pairs)])
    parts = []
    for number, metric in enumerate((*BOTH, *ALONE)):
        for arm in ("treated", "control")[: 2 if metric in BOTH else 1]:
            n = drawn.integers(0, 60, count)
            sums = {"n": n, "num": n * drawn.normal(0.02, 0.002, count), "den": n.astype(float)}
            ids = {"segment_id": np.repeat(np.arange(pairs), WINDOW), "block": np.tile(np.arange(WINDOW), pairs)}
            of = {
                "metric": pl.lit(metric),
                "arm": pl.lit(arm),
                "metric_id": pl.lit(number),
                "arm_id": pl.lit(arm == "control").cast(pl.Int32),
            }
            parts.append(pl.DataFrame(ids | sums).with_columns(**of))
    made = pl.concat(parts).sample(fraction=1, shuffle=True, seed=2)
    named = (names.gather(made["segment_id"]).alias("segment"), starts.gather(made["block"]).alias("block_started_at"))
    return made.drop("block").with_columns(*named, pl.lit("speculation").alias("lever"), pl.lit(0).alias("lever_id"))


def best_s(what: Callable[[], object], times: int) -> tuple[float, float]:
    """(the shortest seconds by the clock, and of the processor) of so many turns."""
    turns = []
    for _ in range(times):
        began_s, began_cpu_s = time.perf_counter(), time.process_time()
        what()
        turns.append((time.perf_counter() - began_s, time.process_time() - began_cpu_s))
    return min(one for one, _ in turns), min(one for _, one in turns)


def filled(folder: Path, segments: int, replicas: int, new: int) -> Store:
    """A store with a window of blocks before `new` ones that are not compared yet; each tenth replica is control."""
    store = Store(folder)
    names = pl.DataFrame({"segment_id": range(1, segments + 1), "segment": [segment(number) for number in range(segments)]})
    metrics = pl.DataFrame({"metric_id": range(1, len(BOTH + ALONE) + 1), "metric": [*BOTH, *ALONE]})
    with store.write() as transaction:
        transaction.using(names, "insert into cell_segments (segment_id, segment) select * from incoming")
        transaction.using(metrics, "insert into cell_metrics select metric_id::smallint, metric from incoming")
        transaction.execute(_SERIES, {"segments": segments, "replicas": replicas})
        period = {"blocks": WINDOW - 1 + new, "until": UNTIL}
        transaction.execute(_CELLS, period)
        transaction.execute(_HISTOGRAMS, period | {"binned": list(BINNED), "bins": BINS})
        dirty = pl.DataFrame({"block_started_at": [UNTIL - BLOCK * (number + 1) for number in range(new)]})
        transaction.using(dirty, "insert into dirty_blocks select block_started_at from incoming")
    return store


def compared_s(store: Store, new: int) -> list[tuple[float, float]]:
    """Seconds that the job takes over each of the new blocks, by the clock and of the processor."""
    taken = []
    for number in reversed(range(new)):
        with store.write() as transaction:
            row = {"ended_at": UNTIL - BLOCK * number + settle.LAG}
            transaction.execute("insert or replace into watermarks values ('s', $ended_at, $ended_at)", row)
        began_s, began_cpu_s = time.perf_counter(), time.process_time()
        while jobs.compare_next(store):
            pass
        taken.append((time.perf_counter() - began_s, time.process_time() - began_cpu_s))
    return taken


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--both-ways", type=int, default=1_000, help="pairs whose effects are made both ways; 0: leave this part out")
    parser.add_argument("--segments", type=int, default=1_000, help="of the store")
    parser.add_argument("--replicas", type=int, default=40)
    parser.add_argument("--blocks", type=int, default=4, help="new ones, the first of which warms up")
    args = parser.parse_args()
    if args.both_ways:
        import compare_reference  # of tests/, and of no other version

        some, every = cells(args.both_ways), cells(args.pairs)
        (new_s, _), (old_s, _) = (best_s(lambda way=way: way.effects(some, UNTIL), 3) for way in (compare, compare_reference))
        print(f"effects of {args.both_ways} pairs: {new_s:.2f} s as arrays, {old_s:.2f} s one by one, {old_s / new_s:.0f} times as long")
        wall_s, cpu_s = best_s(lambda: compare.effects(every, UNTIL), 3)
        print(f"effects of {args.pairs} pairs, {len(every)} cells: {wall_s:.2f} s, {cpu_s:.2f} s of processor")
    with tempfile.TemporaryDirectory() as folder:
        store = filled(Path(folder), args.segments, args.replicas, args.blocks)
        taken = compared_s(store, args.blocks)
        rows = store.rows("select count(*) / count(distinct (segment, until)) as n, count(distinct metric) as metrics from effects")[0]
        wall_s, cpu_s = (statistics.median(column) for column in zip(*taken[1:], strict=True))
        told = f"{wall_s:.2f} s, {cpu_s:.2f} s of processor, {rows['n']:.1f} rows a segment"
        print(f"a block of {args.segments} segments and {args.replicas} replicas: {told}")
        store.close()


_SERIES = """
insert into cell_series
select (row_number() over (order by segment_id, replica))::integer, segment_id, 'speculation',
    if(replica % 10 = 0, 'control', 'treated'), 'r' || replica, null, false
from range(1, $segments + 1) s(segment_id), range($replicas) r(replica)
union all
select 1000000 + (row_number() over (order by segment_id, arm))::integer, segment_id, 'speculation', arm, null, null, true
from range(1, $segments + 1) s(segment_id), (values ('treated'), ('control')) a(arm)
"""
_CELLS = """
insert into block_cells
select series_id, $until::timestamptz - to_minutes(5 * (block + 1)), metric_id, n, n, n * mean, n, n * mean * mean * 1.1, n, n * mean, 0
from (
    select series_id, metric_id, block, 5 + (hash(series_id, metric_id, block) % 20)::bigint as n,
        0.01 + (hash(series_id, metric_id, block, 1) % 1000)::double / 1e5 as mean
    from cell_series, cell_metrics, range($blocks) b(block)
    where not is_together
)
"""
_HISTOGRAMS = """
insert into block_histograms
select series_id, $until::timestamptz - to_minutes(5 * (block + 1)), metric_id, range(100, 100 + $bins)::smallint[],
    [1 + (hash(series_id, metric_id, block, bin) % 30)::bigint for bin in range($bins)]
from cell_series, cell_metrics, range($blocks) b(block)
where is_together and metric in (select unnest($binned))
"""

if __name__ == "__main__":
    main()
