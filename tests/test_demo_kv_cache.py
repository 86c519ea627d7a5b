"""The prefix cache, held request by request to an independent computation on Mooncake's trace, unbounded and with a bound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from demo_fleets import fleet, pool, scenario
from hypothesis import given, settings
from hypothesis import strategies as st

from demo.records import Request
from demo.replicas.kv_cache import KvCache
from demo.replicas.serving import Serving
from demo.traffic.arrivals import Arrival

TRACE = Path(__file__).parents[1] / "../shared/data/mooncake_conversation_trace.jsonl"
BLOCK = 512
SKIPPED_TOKEN_RATIO = 0.373624
"""Of the whole trace, as it is published with it: whole prompts counted."""
RATIOS = {"sglang": 0.373623, "vllm": 0.373380}
"""Less the last token or block of each prompt that is there as a whole."""


class Asked(NamedTuple):
    at_s: float
    tokens: int
    blocks: tuple[int, ...]


@pytest.fixture(scope="module")
def trace() -> list[Asked]:
    if not TRACE.is_file():
        pytest.skip(f"no trace beside the checkout: {TRACE}")
    rows = (json.loads(line) for line in TRACE.read_text(encoding="utf-8").splitlines())
    return [Asked(row["timestamp"] / 1000, row["input_length"], tuple(row["hash_ids"])) for row in rows]


def unbounded(trace: list[Asked]) -> list[int]:
    """The first blocks of each prompt that any prompt before it had."""
    seen: set[int] = set()
    found = []
    for asked in trace:
        fresh = [place for place, block in enumerate(asked.blocks) if block not in seen]
        found.append(fresh[0] if fresh else len(asked.blocks))
        seen.update(asked.blocks)
    return found


def least_recently_used(trace: list[Asked], capacity: int) -> list[int]:
    """The same where the cache holds so many blocks: what was touched longest ago goes, of one prompt what stands last."""
    touched: dict[int, tuple[int, int]] = {}
    found = []
    for number, asked in enumerate(trace):
        leading = 0
        while leading < len(asked.blocks) and asked.blocks[leading] in touched:
            leading += 1
        found.append(leading)
        touched |= {block: (number, -place) for place, block in enumerate(asked.blocks)}
        for block in sorted(touched, key=touched.__getitem__)[: max(0, len(touched) - capacity)]:
            del touched[block]
    return found


def through(cache: KvCache, trace: list[Asked]) -> list[int]:
    """What the simulator's cache has of each prompt, one request after another."""
    found = []
    for asked in trace:
        found.append(cache.leading(asked.blocks))
        assert cache.take(asked.blocks, anyway=True)
        cache.give_back(asked.blocks)
    return found


def test_an_unbounded_cache_skips_what_an_independent_computation_says_of_each_prompt(trace: list[Asked]) -> None:
    cache = KvCache(1e9)
    leading = through(cache, trace)
    assert leading == unbounded(trace)
    skipped = sum(min(blocks * BLOCK, asked.tokens) for blocks, asked in zip(leading, trace, strict=True))
    assert skipped / sum(asked.tokens for asked in trace) == pytest.approx(SKIPPED_TOKEN_RATIO, abs=5e-7)
    assert cache.evicted == 0
    assert cache.used == 0


@pytest.mark.parametrize("capacity", [300, 3000])
def test_a_bounded_cache_forgets_what_was_used_longest_ago(trace: list[Asked], capacity: int) -> None:
    some = trace[:1500]
    cache = KvCache(capacity)
    bounded = through(cache, some)
    assert bounded == least_recently_used(some, capacity)
    assert sum(bounded) < sum(unbounded(some))
    assert cache.idle == capacity
    assert cache.evicted > 0


def played(trace: list[Asked], engine: str) -> list[int]:
    """The cached tokens of each request, in order of arrival, served by one replica whose cache holds everything."""
    served = pool(Serving(kv_tokens=10**9, step_overhead_s=0), engine=engine, kv_block_tokens=BLOCK)
    arrivals = [Arrival(at_s, "p", "t", number, tokens, 1, 1, 0.0, 1.0, blocks) for number, (at_s, tokens, blocks) in enumerate(trace)]
    events = fleet(scenario(served, scrape_s=3600), arrivals).until(10**14)
    requests = [event for event in events if isinstance(event, Request)]
    assert len(requests) == len(trace)
    requests.sort(key=lambda request: request.started_ns)
    return [request.cached_tokens for request in requests]


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_a_fleet_skips_of_mooncakes_prompts_what_their_hashes_say_but_for_what_an_engine_always_computes(
    trace: list[Asked], engine: str
) -> None:
    expected = []
    for asked, leading in zip(trace, unbounded(trace), strict=True):
        computed = BLOCK if engine == "vllm" and asked.tokens % BLOCK == 0 else asked.tokens % BLOCK if engine == "vllm" else 1
        expected.append(min(leading * BLOCK, asked.tokens - computed) if leading == len(asked.blocks) else leading * BLOCK)
    cached = played(trace, engine)
    assert cached == expected
    assert sum(cached) / sum(asked.tokens for asked in trace) == pytest.approx(RATIOS[engine], abs=5e-7)


BLOCKS = st.lists(st.integers(0, 30), max_size=8, unique=True)


@given(st.lists(st.tuples(BLOCKS, st.floats(0, 3), st.booleans(), st.integers(0, 5)), max_size=40), st.integers(1, 25))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_what_is_held_is_there_and_what_was_given_back_takes_no_room(
    asked: list[tuple[list[int], float, bool, int]], capacity: int
) -> None:
    cache = KvCache(capacity)
    holders: list[tuple[list[int], float]] = []
    for blocks, answers, anyway, given_back in asked:
        before = cache.used
        if cache.take(blocks, answers=answers, spare=1.0, anyway=anyway):
            holders.append((blocks, answers))
            assert anyway or cache.used <= capacity - 1.0 + 1e-9
        else:
            assert cache.used == before
        assert all(cache.leading(held) == len(held) for held, _ in holders)
        assert cache.used == pytest.approx(len({block for held, _ in holders for block in held}) + sum(grown for _, grown in holders))
        assert cache.idle == 0 or cache.used + cache.idle <= capacity
        if holders and given_back < len(holders):
            held, grown = holders.pop(given_back)
            cache.grow(-grown)
            cache.give_back(held)
    for held, grown in holders:
        cache.grow(-grown)
        cache.give_back(held)
    assert cache.used == pytest.approx(0, abs=1e-9)


def test_without_reuse_nothing_is_found_again_and_what_was_shared_before_is_given_back_as_such() -> None:
    cache = KvCache(10)
    cache.take([1, 2])
    cache.resize(10, reuse=False)
    cache.take([1, 2])
    assert cache.used == 4
    cache.give_back([1, 2], shared=True)
    cache.give_back([1, 2])
    assert (cache.used, cache.idle) == (0, 2)
    cache.forget()
    assert (cache.idle, cache.leading([1, 2])) == (0, 0)
