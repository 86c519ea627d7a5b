"""A public trace under a cache that forgets nothing: the report gives what an independent computation gives, to the last token."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import mooncake_spans
import pytest

from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom

TRACE = Path(__file__).parents[1] / "../shared/data/mooncake_conversation_trace.jsonl"


@pytest.fixture(scope="module")
def trace() -> Path:
    if not TRACE.is_file():
        pytest.skip(f"no Mooncake trace beside the checkout: {TRACE}")
    return TRACE


@pytest.fixture(scope="module")
def room(trace: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineRoom]:
    opened = EngineRoom(tmp_path_factory.mktemp("mooncake"), Config())
    for export in mooncake_spans.exports(trace):
        opened.spool.append("traces", "10.0.0.1", mooncake_spans.START, export).result(10)
    opened.drain()
    yield opened
    opened.close()


def by_first_use(trace: Path) -> tuple[Fraction, Fraction]:
    """(skipped tokens / prompt tokens, requests with any / requests), told another way than the spans: by who used each block first.

    A block is skipped where an earlier request used it. Ids stand for whole prefixes: no skipped block may follow one that is not.
    """
    first_use: dict[int, int] = {}
    skipped = prompts = requests = hits = 0
    for number, text in enumerate(trace.read_text(encoding="utf-8").splitlines()):
        said = json.loads(text)
        left = said["input_length"]
        prompts += left
        requests += 1
        is_skipped = []
        for block in said["hash_ids"]:
            tokens, left = min(left, 512), left - min(left, 512)
            is_skipped.append(first_use.setdefault(block, number) < number)
            skipped += tokens * is_skipped[-1]
        assert left == 0
        assert is_skipped == sorted(is_skipped, reverse=True)
        hits += is_skipped[0]
    return Fraction(skipped, prompts), Fraction(hits, requests)


def test_skipped_tokens_and_hits_of_the_report_are_those_of_the_trace(room: EngineRoom, trace: Path) -> None:
    (row,) = room.report(metrics=("skipped_token_ratio", "cache_hit_rate")).to_dicts()
    assert (row["requests"], row["skipped_token_ratio_n"], row["skipped_token_ratio_coverage"]) == (12_031, 12_031, 1.0)
    assert (round(row["skipped_token_ratio"], 6), round(row["cache_hit_rate"], 6)) == (0.373624, 0.999917)
    skipped, hits = by_first_use(trace)
    assert (row["skipped_token_ratio"], row["cache_hit_rate"]) == (float(skipped), float(hits))


def test_tokens_are_counted_exactly(room: EngineRoom) -> None:
    sums = "select sum(cached_tokens)::bigint as cached, sum(prompt_tokens)::bigint as prompt, count(*) as n from requests"
    assert room.store.rows(sums) == [{"cached": 54_098_411, "prompt": 144_793_823, "n": 12_031}]
