"""Public traces as traffic: what files say is what arrives, damaged lines lose no others, and the simulator's cache skips what it must."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from mooncake_spans import cached_tokens, lines

from demo.fleet import Fleet
from demo.records import Request
from demo.replicas.serving import Serving
from demo.scenarios.layout import Scenario
from demo.traffic.arrivals import Arrival
from demo.traffic.asked import TraceError
from demo.traffic.traces import KINDS, Trace, fleet_of, kind_of, opened

DATA = Path(__file__).parents[1] / "../shared/data"
HEAD = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
BLOCK_NS = 300_000_000_000


@pytest.fixture(scope="module")
def mooncake() -> Path:
    return beside("mooncake_conversation_trace.jsonl")


@pytest.fixture(scope="module")
def azure() -> Path:
    return beside("azure_llm_2023_conv.csv")


def beside(name: str) -> Path:
    if not (DATA / name).is_file():
        pytest.skip(f"no trace beside the checkout: {DATA / name}")
    return DATA / name


def asked(timestamp: float, tokens: int, *blocks: int, output: int = 5) -> dict[str, object]:
    return {"timestamp": timestamp, "input_length": tokens, "output_length": output, "hash_ids": list(blocks)}


def written(folder: Path, *rows: object, name: str = "trace.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def arrivals(trace: Trace) -> list[Arrival]:
    return [arrival for number in range(int(trace.duration_s // 300) + 1) for arrival in trace.block(number)]


def served(trace: Trace) -> list[Request]:
    fleet, found, block = Fleet(trace.fleet, 0, 1, arrivals=trace.block), list[Request](), 0
    while len(found) < trace.requests:
        block += 1
        found += [event for event in fleet.until(block * BLOCK_NS) if isinstance(event, Request)]
    return found


def one_that_forgets_nothing(engine: str) -> Scenario:
    """A single replica of room for everything."""
    fleet = fleet_of("mooncake-trace")
    serving = Serving(tensor_parallel=8, kv_tokens=10**12, max_sequences=10**6)
    pool = msgspec.structs.replace(fleet.pools[0], engine=engine, groups=1, network="dense-8b", serving=serving)
    return msgspec.structs.replace(fleet, pools=(pool,))


def less_the_last(engine: str, prompt: int, cached: int) -> int:
    """An engine computes a token of each prompt: SGLang one, vLLM what is behind the last full block before it."""
    if cached < prompt:
        return cached
    return (prompt - 1) // 512 * 512 if engine == "vllm" else prompt - 1


@pytest.mark.parametrize(("engine", "ratio"), [("sglang", 0.373623), ("vllm", 0.373380)])
def test_a_cache_that_forgets_nothing_skips_what_the_trace_repeats(mooncake: Path, engine: str, ratio: float) -> None:
    found = served(opened(mooncake, fleet=one_that_forgets_nothing(engine)))
    independent = Counter(
        (line["timestamp"] * 1_000_000, line["input_length"], less_the_last(engine, line["input_length"], cached))
        for line, cached in zip(lines(mooncake), cached_tokens(mooncake), strict=True)
    )
    assert Counter((one.started_ns, one.prompt_tokens, one.cached_tokens) for one in found) == independent
    assert round(sum(one.cached_tokens for one in found) / sum(one.prompt_tokens for one in found), 6) == ratio
    assert round(sum(one.cached_tokens > 0 for one in found) / len(found), 6) == 0.999917


def test_the_fleet_whose_cache_is_bounded_skips_less_and_does_not_fall_behind(mooncake: Path) -> None:
    found = served(opened(mooncake))
    assert len(found) == 12_031
    assert 0.2 < sum(one.cached_tokens for one in found) / sum(one.prompt_tokens for one in found) < 0.37
    assert sorted(one.queue_s for one in found)[len(found) // 2] < 1
    assert max(one.ended_ns for one in found) < (3537 + 60) * 1e9


def test_azures_requests_keep_their_lengths_and_share_nothing(azure: Path) -> None:
    trace = opened(azure)
    found = served(trace)
    assert (len(found), trace.unread) == (19_366, ())
    assert trace.began_ns == 1_700_158_546_680_590_000
    told = [line.split(",") for line in azure.read_text(encoding="utf-8").split()[2::2]]
    assert Counter((one.prompt_tokens, one.output_tokens) for one in found) == Counter((int(prompt), int(out)) for _, prompt, out in told)
    assert {one.cached_tokens for one in found} == {0}
    assert sorted(one.queue_s for one in found)[len(found) // 2] < 1


def test_every_kind_has_a_fleet_without_traffic_of_its_own_whose_names_say_that_it_is_simulated() -> None:
    for kind in KINDS:
        (pool,) = fleet_of(kind).pools
        assert fleet_of(kind).traffic == ()
        assert pool.model.endswith("-simulated")
        assert pool.name.endswith("-simulated")


def test_a_line_of_mooncake_arrives_as_it_says(tmp_path: Path) -> None:
    trace = opened(written(tmp_path, asked(1500, 700, 3, 4, output=9), asked(2000, 512, 3)))
    first, second = trace.block(0)
    assert first == Arrival(0.0, "mooncake-simulated", "mooncake", 3, 700, 9, 9, 0.0, 1.0, (3, 4))
    assert (second.at_s, second.blocks) == (0.5, (3,))
    assert (trace.requests, trace.duration_s, trace.began_ns) == (2, 0.5, None)


def test_a_line_of_azure_arrives_as_it_says_and_its_blocks_are_its_own(tmp_path: Path) -> None:
    rows = ("2023-11-16 18:15:46.6805900,33,44", "2023-11-16 18:15:50.9951690,16,109")
    trace = opened(written(tmp_path, HEAD.strip(), *rows))
    first, second = trace.block(0)
    assert (first.prompt_tokens, first.output_tokens, len(first.blocks)) == (33, 44, 3)
    assert (second.prompt_tokens, second.output_tokens, len(second.blocks)) == (16, 109, 1)
    assert second.at_s == pytest.approx(4.314579)
    assert not set(first.blocks) & set(second.blocks)
    assert first.session != second.session


@pytest.mark.parametrize(
    ("moment", "began_ns"),
    [
        ("2023-11-16 18:15:46.6805900", 1_700_158_546_680_590_000),
        ("2024-05-12 00:00:00.001163+00:00", 1_715_472_000_001_163_000),
        ("2024-05-12 02:00:00+02:00", 1_715_472_000_000_000_000),
    ],
)
def test_moments_of_either_year_are_read_and_are_utc_without_an_offset(tmp_path: Path, moment: str, began_ns: int) -> None:
    assert opened(written(tmp_path, HEAD.strip(), f"{moment},10,10")).began_ns == began_ns


def test_a_head_may_have_its_columns_in_any_order_and_more_of_them(tmp_path: Path) -> None:
    trace = opened(written(tmp_path, "\ufeffGeneratedTokens,model,ContextTokens,TIMESTAMP", "7,x,30,2023-11-16 18:15:46"))
    assert [(one.prompt_tokens, one.output_tokens) for one in trace.block(0)] == [(30, 7)]


def test_a_mark_of_utf8_before_the_first_line_is_no_part_of_it(tmp_path: Path) -> None:
    trace = opened(written(tmp_path, "\ufeff" + json.dumps(asked(0, 10, 1)), asked(10, 10, 2)))
    assert ([one.blocks for one in trace.block(0)], trace.unread) == ([(1,), (2,)], ())


def test_lines_in_disorder_arrive_in_order_of_time(tmp_path: Path) -> None:
    found = arrivals(opened(written(tmp_path, *(asked(1000 * at, 10, at) for at in (900, 3, 400, 299, 300)))))
    assert [one.blocks[0] for one in found] == [3, 299, 300, 400, 900]
    assert all(one.at_s <= other.at_s for one, other in pairwise(found))


@pytest.mark.parametrize("speed", [0.5, 1, 3, 1000])
def test_speed_divides_times_and_loses_nobody(tmp_path: Path, speed: float) -> None:
    path = written(tmp_path, *(asked(700 * at, 10, at) for at in range(1000)))
    found = arrivals(opened(path, speed))
    assert [one.at_s for one in found] == pytest.approx([0.7 * at / speed for at in range(1000)])
    assert [one.blocks[0] for one in found] == list(range(1000))


def test_a_block_of_time_has_what_arrives_in_it(tmp_path: Path) -> None:
    trace = opened(written(tmp_path, *(asked(100_000 * at, 10, at) for at in range(10))), 0.5)
    for number in range(7):
        assert all(number * 300 <= one.at_s < (number + 1) * 300 for one in trace.block(number))
    assert trace.block(7) == trace.block(-1) == []


def test_a_trace_played_over_and_over_begins_anew_after_whole_blocks(tmp_path: Path) -> None:
    trace = opened(written(tmp_path, asked(0, 10, 1), asked(400_000, 10, 2)))
    found = [(one.at_s, one.blocks) for number in range(-2, 4) for one in trace.again(number)]
    assert found == [(-600, (1,)), (-200, (2,)), (0, (1,)), (400, (2,)), (600, (1,)), (1000, (2,))]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "truncated"),
        (asked(0, 0), "Expected `int` >= 1 - at `$.input_length`"),
        (asked(0, 10, 1, output=0), "Expected `int` >= 1 - at `$.output_length`"),
        (asked(-1, 10, 1), "`$.timestamp`"),
        (asked(0, 513, 1), "1 hash_ids for 513 tokens, where 512 tokens each make 2"),
        (asked(0, 10**9, 1), "Expected `int` <= 10000000"),
        (asked(9.9e12, 10, 1), "timestamp: at most 7,948,800,000 ms is taken, 92 days from the trace's beginning"),
        (asked(1e308, 10, 1), "timestamp: at most 7,948,800,000 ms is taken"),
        ({"timestamp": 0, "input_length": 1, "output_length": 1}, "missing required field `hash_ids`"),
        ('{"timestamp": 0, "input_length": true, "output_length": 1, "hash_ids": [1]}', "Expected `int`, got `bool`"),
    ],
)
def test_a_bad_line_of_mooncake_is_named_and_loses_no_other(tmp_path: Path, line: object, why: str) -> None:
    path = written(tmp_path, asked(0, 10, 1), line, "", asked(7, 10, 2))
    trace = opened(path)
    assert [one.blocks for one in trace.block(0)] == [(1,), (2,)]
    (told,) = trace.unread
    assert told.startswith(f"{path}:2: ")
    assert why in told
    assert "; it says {" in told


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("2023-11-16 18:15:46,5", "2 values for 3 columns"),
        ("yesterday,5,5", "TIMESTAMP: a moment such as"),
        ("9999-12-31 23:59:59,5,5", "TIMESTAMP: a moment of the years 1971 to 2199 is taken"),
        ("2200-01-01 00:00:00,5,5", "TIMESTAMP: a moment of the years 1971 to 2199 is taken"),
        ("0001-01-01 00:00:00+02:00,5,5", "TIMESTAMP: a moment of the years 1971 to 2199 is taken"),
        ("2023-11-16 18:15:46,-5,5", "ContextTokens: a whole number from 1 to 10,000,000 is taken"),
        ("2023-11-16 18:15:46,5,0", "GeneratedTokens: a whole number"),
        ("2023-11-16 18:15:46,5.5,5", "ContextTokens: a whole number"),
        ("2023-11-16 18:15:46,²,5", "ContextTokens: a whole number"),
        ("2023-11-16 18:15:46,10000001,5", "ContextTokens: a whole number"),
    ],
)
def test_a_bad_line_of_azure_is_named_and_loses_no_other(tmp_path: Path, line: str, why: str) -> None:
    path = written(tmp_path, HEAD.strip(), "2023-11-16 18:15:46,3,4", line, "2023-11-16 18:15:47,5,6")
    trace = opened(path)
    assert [one.prompt_tokens for one in trace.block(0)] == [3, 5]
    (told,) = trace.unread
    assert told.startswith(f"{path}:3: {why}")
    assert told.endswith(f"; it says {line}")


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ([HEAD.strip(), "x"], "azure-trace"),
        (["damaged", asked(0, 1, 1)], "mooncake-trace"),
        ([asked(0, 1, 1) | {"more": 1}], "mooncake-trace"),
        (["started_at,id", "2026-01-01,5"], None),
        ([{"timestamp": 0, "input_length": 1}], None),
        ([], None),
    ],
)
def test_a_trace_is_told_by_its_first_lines(tmp_path: Path, rows: Iterable[object], kind: str | None) -> None:
    path = written(tmp_path, *rows, name="anything")
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert (kind_of(path), kind_of(packed)) == (kind, kind)


def test_a_file_that_cannot_be_played_is_refused_with_the_reason(tmp_path: Path) -> None:
    good = written(tmp_path, asked(0, 10, 1), asked(10, 10, 1))
    with pytest.raises(TraceError, match=r"speed 0: a number from 0\.001 to 10000 is taken"):
        opened(good, 0)
    for speed in (float("nan"), float("inf"), 1e-300, 10_001, -1):
        with pytest.raises(TraceError, match=r"a number from 0\.001 to 10000 is taken"):
            opened(good, speed)
    with pytest.raises(TraceError, match="no trace that is known; taken are JSON lines"):
        opened(written(tmp_path, "words", name="words"))
    with pytest.raises(TraceError, match="a first line with the columns TIMESTAMP"):
        opened(good, kind="azure-trace")
    with pytest.raises(TraceError, match=r"none of its lines is a request; the first: .*words:1"):
        opened(tmp_path / "words", kind="mooncake-trace")
    with pytest.raises(TraceError, match="151 days apart; at most 92 days are played"):
        opened(written(tmp_path, HEAD.strip(), "2023-01-01,10,1", "2023-06-01,10,1", name="long"))
    with pytest.raises(TraceError, match=r"kv_block_tokens = 16; the blocks of .* have 512 tokens"):
        opened(good, fleet=fleet_of("azure-trace"))
    (tmp_path / "cut").write_bytes(gzip.compress(good.read_bytes())[:-9])
    with pytest.raises(TraceError, match="not a whole gzip file"):
        opened(tmp_path / "cut", kind="mooncake-trace")


def test_prompts_go_together_by_what_is_theirs_and_not_by_what_everybody_begins_with(tmp_path: Path) -> None:
    rows = [asked(at, 1500, 0, 10 + at // 2, 5000 + at) for at in range(100)]
    found = opened(written(tmp_path, *rows)).block(0)
    assert [one.session for one in found] == [10 + at // 2 for at in range(100)]
