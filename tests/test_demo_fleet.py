"""A fleet's stream: the same for the same seed, in order of time, and true to Little's law and to what the roofline lets it do."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from demo_fleets import NS, fleet, looked_at, pool, requests, scenario, unlike

from demo.fleet import Event, Fleet
from demo.records import Deployment, Reading, Request, Score
from demo.replicas import drafting
from demo.replicas.hardware import HARDWARE, NETWORKS
from demo.replicas.roofline import Roofline, Work
from demo.replicas.serving import Affinity, Serving, Speculation, Split
from demo.scenarios.layout import Disorder, Evaluation, Mix, Noise, Scenario
from demo.traffic.arrivals import Arrival

BEGAN_NS = 1_764_400_123 * NS
EIGHT = NETWORKS["dense-8b"]


def everything() -> Scenario:
    """A small fleet with all that it can do, and all that can happen to it."""
    speculation = Speculation(draft_tokens=4, acceptance=(0.7, 0.6), temperature_slope=0.2)
    split = Split(prefill=1, decode=2, link_bytes_per_s=1e9, local_below_tokens=300)
    pools = (
        pool(Serving(speculation=speculation), name="a", groups=4, lever="speculation", control=Serving(), kv_block_tokens=128),
        pool(Serving(affinity=Affinity(cap=1.5)), name="b", engine="sglang", groups=2, kv_block_tokens=128),
        pool(Serving(split=split), name="c", engine="dynamo", lever="disaggregation", groups=2, control=Serving(), control_every=2),
    )
    mixes = tuple(
        Mix(name=name, pool=name, requests_per_s=rate, input_tokens=(64, 4096), output_median_tokens=100, system_tokens=256, turns=3)
        for name, rate in (("a", 4), ("b", 3), ("c", 3))
    )
    suite = Evaluation(suite="s", kind="product", pool="a", better="higher", original=0.8, treated=0.79, sd=0.01, every_hours=0.25)
    disorder = Disorder(abort_share=0.02, error_share=0.02, retry_share=0.5)
    return scenario(*pools, traffic=mixes, noise=Noise(), evaluations=(suite,), disorder=disorder, scrape_s=30)


def stream(seconds: Sequence[float], seed: int = 5) -> list[list[Event]]:
    played = Fleet(everything(), BEGAN_NS, seed)
    return [played.until(BEGAN_NS + round(second * NS)) for second in seconds]


def out_s(event: Event) -> float:
    """When the fleet gives an event, in seconds: a request when its last token is out, before the front end's own time."""
    if not isinstance(event, Request):
        return (event.at_ns - BEGAN_NS) / NS
    return (event.started_ns - BEGAN_NS) / NS + event.ttft_s - event.frontend_s + event.decode_s


def told(events: Sequence[Event]) -> list[tuple[Any, ...]]:
    """What events say; deployments are each themselves alone, so by what they say."""
    return [
        tuple((value.replica, value.role, value.arms) if isinstance(value, Deployment) else value for value in event) for event in events
    ]


@pytest.fixture(scope="module")
def half_an_hour() -> list[Event]:
    return stream([2000])[0]


def test_how_often_one_asks_changes_nothing(half_an_hour: list[Event]) -> None:
    parts = stream([0.001, 10, 10, 20, 305, 905.5, 2000])
    assert told([event for part in parts for event in part]) == told(half_an_hour)


def test_the_same_seed_gives_the_same_events_and_another_seed_others() -> None:
    first, again, other = (told(stream([120], seed)[0]) for seed in (1, 1, 2))
    assert first == again
    assert {event[1] for event in first if len(event) == len(Request._fields)}.isdisjoint(event[1] for event in other)


def test_events_come_in_order_of_time_each_in_the_call_that_covers_it() -> None:
    parts = stream([90, 100, 400])
    moments = [out_s(event) for part in parts for event in part]
    assert all(before <= after + 1e-6 for before, after in pairwise(moments))
    assert max(out_s(event) for event in parts[0]) < 90 <= min(out_s(event) for event in parts[1]) + 1e-6
    assert {type(event) for part in parts for event in part} == {Request, Reading, Score}


def test_every_replica_is_looked_at_at_each_scrape_and_its_counts_never_fall(half_an_hour: list[Event]) -> None:
    readings = [event for event in half_an_hour if isinstance(event, Reading)]
    assert len(readings) == 12 * 67
    counts = ("prompt_tokens", "cached_tokens", "output_tokens", "verify_steps", "preemptions", "evicted_blocks", "iterations")
    of: dict[str, list[Reading]] = {}
    for reading in readings:
        of.setdefault(reading.of.replica, []).append(reading)
    for seen in of.values():
        for name in (*counts, "seconds_busy", "collective_s", "collective_bytes"):
            values = [getattr(reading, name) for reading in seen]
            assert values == sorted(values)
        assert all(after.seconds_busy - before.seconds_busy <= 30 + 1e-6 for before, after in pairwise(seen))


def test_aborts_errors_and_retries_come_as_often_as_they_are_asked_for(half_an_hour: list[Event]) -> None:
    ended = [event for event in half_an_hour if isinstance(event, Request)]
    share = {outcome: sum(request.outcome == outcome for request in ended) / len(ended) for outcome in ("ok", "error", "aborted")}
    assert share["aborted"] == pytest.approx(0.02, abs=0.004)
    assert share["error"] == pytest.approx(0.02, abs=0.004)
    retried = {request.request_key: request for request in ended if request.attempt == 2}
    failed = {request.request_key: request for request in ended if request.outcome == "error"}
    assert len(retried) / len(failed) == pytest.approx(0.5, abs=0.1)
    assert set(retried) <= set(failed)
    assert all(retry.started_ns - failed[key].started_ns == pytest.approx(NS / 2, abs=1000) for key, retry in retried.items())


def test_a_fleet_can_begin_in_the_middle_of_its_hours() -> None:
    played = Fleet(everything(), BEGAN_NS, 1, from_hour=0.5)
    events = played.until(BEGAN_NS + 1900 * NS)
    assert min(out_s(event) for event in events) >= 1800
    assert sum(isinstance(event, Request) for event in events) > 500


def poisson(per_s: float, until_s: float, prompt: int, output: int, seed: int = 1) -> list[Arrival]:
    rng = np.random.default_rng(seed)
    moments = np.cumsum(rng.exponential(1 / per_s, int(per_s * until_s)))
    outputs = rng.geometric(1 / output, len(moments)).tolist()
    return [unlike(at_s, number, prompt, tokens) for number, (at_s, tokens) in enumerate(zip(moments.tolist(), outputs, strict=True))]


SPLIT = Split(prefill=1, decode=1, link_bytes_per_s=4e8, link_latency_s=0.001)


@pytest.mark.parametrize(
    "serving",
    [Serving(), Serving(max_sequences=24), Serving(kv_tokens=24_000), Serving(split=SPLIT)],
    ids=["plain", "few places", "little cache", "split"],
)
def test_as_many_are_there_on_average_as_come_times_as_long_as_they_stay(serving: Serving) -> None:
    """Little's law: L = arrivals a second x mean time, from readings on one side and requests on the other."""
    until_s = 1200.0
    played = fleet(scenario(pool(serving), scrape_s=0.5), poisson(3.0, until_s, 900, 250))
    ended, readings = looked_at(played, until_s + 600)
    there = sum(reading.running + reading.waiting + reading.transferring for reading in readings) * 0.5 / until_s
    stayed_s = sum(request.ttft_s - request.frontend_s + request.decode_s for request in ended)
    assert there == pytest.approx(stayed_s / until_s, rel=0.01)
    assert there > 5


def saturated(serving: Serving, prompt: int = 64, hardware: str = "h100") -> tuple[float, float]:
    """Tokens a second, and the mean batch, of a replica that always has more to do than it can. Answers have 100 to 300 tokens."""
    outputs = np.random.default_rng(1).integers(100, 301, 2000).tolist()
    played = fleet(
        scenario(pool(serving, hardware=hardware), scrape_s=1), [unlike(0.0, place, prompt, output) for place, output in enumerate(outputs)]
    )
    _, readings = looked_at(played, 60)
    busy = [reading for reading in readings if reading.waiting > 0]
    busy = busy[len(busy) // 3 :]
    tokens = busy[-1].output_tokens - busy[0].output_tokens
    return tokens / ((busy[-1].at_ns - busy[0].at_ns) / NS), sum(reading.running for reading in busy) / len(busy)


GROWN = (200**2 + 200**2 / 12) / 200 / 2
"""Tokens that a running answer has on average, where answers of 100 to 300 are equally frequent."""


def limit(serving: Serving, batch: float, prompt: int, hardware: str = "h100") -> float:
    """Tokens a second at a batch in which prompts are read as fast as answers end, by the roofline."""
    costs = Roofline(EIGHT, HARDWARE[hardware], serving)
    chunk = batch / 200 * prompt
    return batch / costs.iteration_s(Work(int(batch), batch, batch * (prompt + GROWN) + chunk / 2, chunk, prompt / 2))


@pytest.mark.parametrize("hardware", ["h100", "a100"])
@pytest.mark.parametrize("most", [16, 64, 200])
def test_a_saturated_replica_gives_what_the_roofline_says_of_its_largest_batch(most: int, hardware: str) -> None:
    serving = Serving(max_sequences=most)
    tokens_per_s, batch = saturated(serving, hardware=hardware)
    assert batch == pytest.approx(most, rel=0.01)
    assert tokens_per_s == pytest.approx(limit(serving, most, 64, hardware), rel=0.06)


def test_saturation_moves_with_places_with_memory_bandwidth_and_with_room_for_keys_and_values() -> None:
    few, many = (saturated(Serving(max_sequences=most))[0] for most in (16, 32))
    assert many / few == pytest.approx(2, rel=0.15)  # what is read is shared by twice as many
    slow = saturated(Serving(max_sequences=16), hardware="a100")[0]
    ratio = HARDWARE["h100"].memory_bytes_per_s / HARDWARE["a100"].memory_bytes_per_s
    assert 1.1 < few / slow < ratio * 1.02
    for kv_tokens in (16_000, 32_000):  # as many fit as their prompts and half their answers take room
        _, batch = saturated(Serving(kv_tokens=kv_tokens), prompt=512)
        assert batch == pytest.approx(kv_tokens * 0.99 / (512 + GROWN), rel=0.1)


def per_token_s(serving: Serving, batch: int) -> float:
    """The time per token of answers that are decoded together from the first token to the last."""
    ended = requests(fleet(scenario(pool(serving)), [unlike(0.0, number, 16, 600) for number in range(batch)]))
    return sum(request.decode_s for request in ended) / sum(request.output_tokens - 1 for request in ended)


@pytest.mark.parametrize(("draft_tokens", "acceptance"), [(2, 0.6), (5, 0.6), (4, 0.65)])
def test_the_gain_of_speculation_changes_its_sign_at_the_break_even_batch(draft_tokens: int, acceptance: float) -> None:
    speculation = Speculation(draft_tokens=draft_tokens, acceptance=(acceptance,))
    plain, drafting_ = (Serving(chunk_tokens=1 << 20, max_sequences=4096, speculation=each) for each in (None, speculation))
    costs, gained, context = Roofline(EIGHT, HARDWARE["h100"], drafting_), drafting.tokens_per_step(speculation), 16 + 300

    def gain(batch: int) -> float:
        verified = costs.iteration_s(Work(batch, batch * (draft_tokens + 1), batch * context))
        return 1 - verified / gained / costs.iteration_s(Work(batch, batch, batch * context))

    even = next(batch for batch in range(1, 1000) if gain(batch) < 0)
    below, above = (1 - per_token_s(drafting_, batch) / per_token_s(plain, batch) for batch in (int(even * 0.85), int(even * 1.2)))
    assert below > 0 > above
    assert below == pytest.approx(gain(int(even * 0.85)), abs=0.03)
