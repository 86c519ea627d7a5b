"""How long one judging takes: every segment of each lever with a new block, all shipped policies, writing what changed; then nothing new.

    python benchmarks/judging.py --segments 10000
    python benchmarks/judging.py --segments 10000 --each

`--segments` are those of all levers together, or with `--each` of every lever that has a policy. Effects of two blocks are put into a store
as the pipeline writes them: of most segments with a control arm and a lever that pays, of one in ten without control, and of one in a
hundred with a lever that has begun to do harm. Made-up numbers; the store and the policies are the real ones.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl

from alerts import run
from alerts.chain import Policy
from alerts.effects import NULLS, effect_name
from alerts.policy import shipped
from queries.store import Store

START = datetime(2026, 3, 2, 12, tzinfo=UTC)
BLOCK = timedelta(seconds=300)
COMPARED = ("net_itl_s", "tpot_s", "ttft_s", "e2e_s", "error_rate")
TAILS = ("ttft_s_p50", "ttft_s_p95", "ttft_s_p99", "tpot_s_p50", "tpot_s_p95", "tpot_s_p99", "e2e_s_p95")
SHOWN = ("queue_s", "gpu_s_per_output_token")
ALONE = {"acceptance_length": 2.5, "batch_at_admission": 8.0, "skipped_token_ratio": 0.5, "kv_usage": 0.5, "queue_share": 0.05}
WITHOUT_CONTROL, HARMED = 0.1, 0.01


def effects(policies: list[Policy], lever: str, segments: int, block: int, rng: np.random.Generator) -> pl.DataFrame:
    """One block's effects of a lever: a row per segment and metric."""
    names = [f'{{"hardware":"h100","input_bucket":"{n % 8}","model":"m{n // 8:05d}","topology":"tp4"}}' for n in range(segments)]
    has_control, is_harmed = rng.random(segments) >= WITHOUT_CONTROL, np.arange(segments) % round(1 / HARMED) == 0
    return pl.concat(list(_rows(policies, lever, names, has_control, is_harmed, block, rng)), how="diagonal_relaxed")


def _rows(
    policies: list[Policy],
    lever: str,
    names: list[str],
    has_control: np.ndarray,
    is_harmed: np.ndarray,
    block: int,
    rng: np.random.Generator,
) -> Iterator[pl.DataFrame]:
    n, until = len(names), START + block * BLOCK
    common = {"lever": lever, "segment": names, "arm_a": "treated", "since": until - 24 * BLOCK, "until": until, "blocks": 24}
    common |= {"n_a": 4000, "method": "paired_blocks_window", "coverage": 1.0}
    primary = {effect_name(policy.expected_benefit.metric) for policy in policies if policy.lever == lever}
    for metric in (*COMPARED, *TAILS, *SHOWN):
        is_bad = is_harmed if metric in primary else np.zeros(n, dtype=bool)
        middle = np.where(is_bad, -0.3, 0.15) + rng.normal(0, 0.01, n)
        logs = np.where(is_bad[:, None] & (np.array(NULLS) >= -0.1), 30.0, rng.normal(-3, 1, (n, len(NULLS))))
        own = {"metric": metric, "n_b": np.where(has_control, 400, 0), "value_a": 0.02, "basis": np.where(has_control, "control", "none")}
        known = {"value_b": 0.024, "gain": middle, "gain_low": middle - 0.05, "gain_high": middle + 0.05}
        frame = pl.DataFrame(common | own | known | {"arm_b": "control", "control": has_control, "permission": "rotates", "tests": n})
        is_logged = metric in (*COMPARED, *TAILS)
        logged = [pl.Series("evidence_below", logs.tolist()), pl.Series("evidence_above", (-logs).tolist())] if is_logged else []
        frame = frame.with_columns(*logged)
        of_control = ["value_b", "gain", "gain_low", "gain_high", "arm_b", "permission", *(one.name for one in logged)]
        yield frame.with_columns(pl.when("control").then(pl.col(name)).alias(name) for name in of_control).drop("control")
    for metric in ALONE:
        value = rng.normal(ALONE[metric], ALONE[metric] / 50, n)
        yield pl.DataFrame(common | {"metric": metric, "n_b": 0, "value_a": value, "basis": "premise"})


def judged(store: Store, policies: list[Policy], block: int) -> tuple[float, float, int]:
    """(seconds of one judging, seconds that all processors worked for it, rows that it wrote)."""
    began, worked = time.perf_counter(), time.process_time()
    rows = run.run(store, policies, START + block * BLOCK, START + block * BLOCK)
    return time.perf_counter() - began, time.process_time() - worked, rows


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--segments", type=int, default=10_000)
    parser.add_argument("--each", action="store_true", help="so many segments of each lever")
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    policies, rng = shipped(), np.random.default_rng(asked.seed)
    levers = sorted({policy.lever for policy in policies})
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        seconds, worked, idle = [], [], []
        for block in range(1, asked.blocks + 1):
            frames = [effects(policies, lever, asked.segments // (1 if asked.each else len(levers)), block, rng) for lever in levers]
            with store.write() as transaction:
                put = sum(transaction.insert("effects", frame) for frame in frames)
            took, work, rows = judged(store, policies, block)
            seconds.append(took)
            worked.append(work)
            nothing, _, unchanged = judged(store, policies, block)
            idle.append(nothing)
            print(
                f"block {block}: {put:,} effects, {rows:,} rows written in {took:.2f} s ({work:.2f} s of processor time); "
                f"unchanged: {unchanged} rows in {nothing:.3f} s"
            )
        streams = store.rows("select count(*) as n from current_verdicts")[0]["n"]
        told = store.rows("select verdict, count(*) as n from current_verdicts group by all order by n desc")
        store.close()
    said = ", ".join(f"{row['n']:,} {row['verdict']}" for row in told)
    print(f"{len(levers)} levers, {len(policies)} policies, {streams:,} streams: {said}")
    after_first = f"{statistics.median(seconds[1:]):.2f} s, {statistics.median(worked[1:]):.2f} s of processor time"
    print(f"one judging: {after_first} at the median after the first; unchanged {statistics.median(idle):.3f} s")


if __name__ == "__main__":
    main()
