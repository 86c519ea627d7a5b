"""The traffic model: a scenario and a block of five minutes in, a frame of request records out, one row a request, by arrival.

Everything is drawn from (seed, lane, block), so a block is the same whoever asks for it, and when.
"""

from __future__ import annotations

import zlib
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from demo import formula, records
from demo.formula import Floats
from demo.scenarios import CONTROL_EVERY, Lane, Noise, Pool, Scenario, Speculation

BLOCK_S = 300
ROTATION_S = 1800
NS = 1_000_000_000
CACHE_BLOCK_TOKENS = 32
QUEUE_PER_SEQUENCE_S = 0.004
DETOKENIZE_S = 0.001

Ints: TypeAlias = npt.NDArray[np.int64]
Columns: TypeAlias = dict[str, Any]


def requests(scenario: Scenario, began_ns: int, block: int, seed: int) -> pl.DataFrame:
    """The requests that arrive in a block, counted from the Unix epoch, of a scenario whose hour 0 is at `began_ns`."""
    frames = []
    for pool in scenario.pools:
        first = 0
        for lane in pool.lanes:
            frames.append(_lane_requests(scenario, pool, lane, first, began_ns, block, seed))
            first += lane.replicas
    frame = pl.concat(frames).sort("started_ns", maintain_order=True)
    return frame.filter(pl.col("started_ns") >= began_ns)


def in_control(lane: Lane, block: int) -> npt.NDArray[np.bool_]:
    """Which of a lane's replicas are control during a block: a quarter of them, another quarter every half hour."""
    control: npt.NDArray[np.bool_] = (np.arange(lane.replicas) - block * BLOCK_S // ROTATION_S) % CONTROL_EVERY == 0
    return control


def _lane_requests(scenario: Scenario, pool: Pool, lane: Lane, first: int, began_ns: int, block: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng([seed, zlib.crc32(f"{pool.model} {lane.input_bucket}".encode()), block])
    started_ns = _arrivals(rng, scenario, lane, began_ns, block)
    changes = [change for change in scenario.changes if (change.model, change.input_bucket) == (pool.model, lane.input_bucket)]
    batch = formula.batch(lane, scenario.day, changes, _hours(started_ns, began_ns))
    replica = rng.integers(lane.replicas, size=len(started_ns))
    tokens = _tokens(rng, pool, lane, len(started_ns))
    treated = ~in_control(lane, block)[replica] if pool.speculation else np.zeros(len(started_ns), dtype=np.bool_)
    decode = _decode(rng, pool, lane, tokens["output_tokens"], treated, batch)
    decode["decode_s"] = decode["decode_s"] * _noise(rng, scenario.noise, replica, lane.replicas)
    prompt = _before_first_token(rng, pool, lane, tokens, batch)
    identity = {"started_ns": started_ns, "batch": batch, **_ids(rng, len(started_ns))}
    frame = pl.DataFrame({**identity, **tokens, **decode, **prompt}).with_columns(_placed(pool, first + replica, treated))
    return frame.with_columns(*_known_facts(pool)).select(pl.col(name).cast(kind) for name, kind in records.schema().items())


def _hours(started_ns: Ints, began_ns: int) -> Floats:
    return (started_ns - began_ns) / (3600 * NS)


def _arrivals(rng: np.random.Generator, scenario: Scenario, lane: Lane, began_ns: int, block: int) -> Ints:
    """Poisson arrivals at the block's load."""
    begins_ns = block * BLOCK_S * NS
    middle = np.array([begins_ns + BLOCK_S * NS // 2], dtype=np.int64)
    expected = lane.requests_per_s * BLOCK_S * formula.load(scenario.day, _hours(middle, began_ns))[0]
    return begins_ns + np.sort(rng.integers(BLOCK_S * NS, size=rng.poisson(expected)))


def _tokens(rng: np.random.Generator, pool: Pool, lane: Lane, n: int) -> Columns:
    """Prompt lengths log-uniform in the lane; output lengths log-normal, cut at the most that was asked for."""
    low, high = lane.input_tokens
    prompt = np.exp(rng.uniform(np.log(low), np.log(high + 1), size=n)).astype(np.int64).clip(low, high)
    share = np.where(rng.random(n) < lane.cache_hit, rng.normal(lane.cached_share, 0.15, size=n).clip(0, 0.95), 0)
    wanted = rng.lognormal(np.log(lane.output_median_tokens), lane.output_sigma, size=n).astype(np.int64)
    output = wanted.clip(1, pool.max_tokens)
    return {
        "prompt_tokens": prompt,
        "cached_tokens": (share * prompt).astype(np.int64) // CACHE_BLOCK_TOKENS * CACHE_BLOCK_TOKENS,
        "output_tokens": output,
        "finish_reason": np.where(output == pool.max_tokens, "length", "stop"),
    }


def _decode(rng: np.random.Generator, pool: Pool, lane: Lane, output: Ints, treated: npt.NDArray[np.bool_], batch: Floats) -> Columns:
    """Decode time as steps times seconds a step; accepted drafts save steps, verifying makes each one longer."""
    steps, each_s = output - 1, formula.step_s(pool, lane, batch)
    if pool.speculation is None:
        return {"decode_s": steps * each_s, "draft_tokens": 0, "accepted_tokens": 0, "verify_steps": 0}
    verified, accepted = _drafting(rng, pool.speculation, steps)
    steps = np.where(treated, steps - accepted, steps)
    each_s = np.where(treated, formula.verified_step_s(pool, lane, pool.speculation, batch), each_s)
    drafted = verified * pool.speculation.draft_tokens
    return {"decode_s": steps * each_s, "draft_tokens": drafted, "accepted_tokens": accepted, "verify_steps": verified}


def _drafting(rng: np.random.Generator, speculation: Speculation, emitted: Ints) -> tuple[Ints, Ints]:
    """Steps that verified a draft, and drafts accepted; a step yields its own token besides, so both never exceed what was emitted."""
    verified = rng.binomial((emitted / formula.tokens_per_step(speculation)).round().astype(np.int64), speculation.coverage)
    acceptance = rng.normal(speculation.acceptance, 0.05, size=len(emitted)).clip(0, 1)
    accepted = np.minimum(rng.binomial(verified * speculation.draft_tokens, acceptance), emitted - verified)
    return verified, accepted


def _noise(rng: np.random.Generator, noise: Noise, replica: Ints, replicas: int) -> Floats:
    """A factor of mean 1 on each request's decode time: its own, its replica's in this block, and the block's."""
    spread = float(np.sqrt(np.log1p(noise.request_cv**2)))
    own = _around_one(rng, spread, len(replica))
    return own * _around_one(rng, noise.replica_sd, replicas)[replica] * _around_one(rng, noise.block_sd, 1)


def _around_one(rng: np.random.Generator, sigma: float, n: int) -> Floats:
    return rng.lognormal(-sigma * sigma / 2, sigma, size=n)


def _before_first_token(rng: np.random.Generator, pool: Pool, lane: Lane, tokens: Columns, batch: Floats) -> Columns:
    """Tokenizing, waiting, reading the prompt, and where the pool is split, moving its cache."""
    n = len(batch)
    frontend_s = (0.003 + 1e-6 * tokens["prompt_tokens"]) * _around_one(rng, 0.3, n)
    queue_s = rng.exponential(QUEUE_PER_SEQUENCE_S * batch)
    uncached = tokens["prompt_tokens"] - tokens["cached_tokens"]
    prefill_s = (uncached * pool.prefill_per_token_s + formula.step_s(pool, lane, batch)) * _around_one(rng, 0.15, n)
    columns = {"frontend_s": frontend_s, "queue_s": queue_s, "prefill_s": prefill_s, "kv_transfer_s": None}
    if pool.transfer:
        moved_s = pool.transfer.base_s + pool.transfer.per_token_s * tokens["prompt_tokens"]
        columns["kv_transfer_s"] = moved_s * _around_one(rng, 0.1, n)
    return columns


def _ids(rng: np.random.Generator, n: int) -> Columns:
    entropy = rng.bytes(24 * n)
    chunks = [entropy[24 * i : 24 * (i + 1)] for i in range(n)]
    return {"trace_id": [chunk[:16] for chunk in chunks], "parent_span_id": [chunk[16:] for chunk in chunks]}


def _placed(pool: Pool, replica: Ints, treated: npt.NDArray[np.bool_]) -> list[pl.Series]:
    """Who served it, and in which arm."""
    role = "-decode" if pool.transfer else ""
    arms = np.where(treated, "treated", "control")
    return [
        pl.Series("replica", [f"{pool.model}{role}-{number}" for number in replica], dtype=pl.String),
        pl.Series("prefill_replica", [f"{pool.model}-prefill-{number}" if pool.transfer else None for number in replica], dtype=pl.String),
        pl.Series("speculation_arm", arms if pool.speculation else [None] * len(replica), dtype=pl.String),
    ]


def _known_facts(pool: Pool) -> list[pl.Expr]:
    """The pool's facts, the sums of times, and no counts of speculation where there was none."""
    ttft_s = pl.col("frontend_s") + pl.col("queue_s") + pl.col("prefill_s") + pl.col("kv_transfer_s").fill_null(0)
    treated = pl.col("speculation_arm") == "treated"
    counts = [pl.when(treated).then(pl.col(name)).alias(name) for name in ("draft_tokens", "accepted_tokens", "verify_steps")]
    texts = {"engine": pool.engine, "model": pool.model, "hardware": pool.hardware, "topology": pool.topology}
    settings = {"speculation": pool.speculation.setting if pool.speculation else None, "gpus": pool.gpus}
    sampling = {"temperature": pool.temperature, "top_p": 1.0, "max_tokens": pool.max_tokens}
    facts = [pl.lit(value).alias(name) for name, value in {**texts, **settings, **sampling}.items()]
    return [*facts, *counts, ttft_s.alias("ttft_s"), (ttft_s + pl.col("decode_s") + DETOKENIZE_S).alias("e2e_s")]
