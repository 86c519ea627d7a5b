"""A pool: arms that rotate, affinity with hot spots and caps, and workers that read apart from those that decode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from demo_fleets import NS, arrival, fleet, looked_at, pool, requests, scenario, unlike

from demo.pools import Link
from demo.records import Reading, Request
from demo.replicas.serving import Affinity, Serving, Speculation, Split
from demo.scenarios.layout import Change
from demo.traffic.arrivals import Arrival

SPECULATION = Speculation(draft_tokens=3, acceptance=(0.7,))


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def steady(every_s: float, until_s: float, prompt: int = 100, output: int = 50) -> list[Arrival]:
    return [unlike(number * every_s, number, prompt, output) for number in range(int(until_s / every_s))]


def test_one_group_of_four_is_control_each_half_hour_and_in_turn_all_of_them() -> None:
    served = pool(Serving(speculation=SPECULATION), groups=8, lever="speculation", setting="ngram", control=Serving())
    ended = requests(fleet(scenario(served), steady(0.5, 7200)), 7300)
    halves: list[set[str]] = [set() for _ in range(4)]
    for request in ended:
        arm = dict(request.at.arms)["speculation"]
        assert dict(request.at.levers)["speculation"] == ("ngram" if arm == "treated" else "off")
        assert (arm == "treated") == (request.verify_steps is not None) == (request.at.speculative_tokens == 3)
        if arm == "control":
            halves[min(3, int(request.started_ns / NS // 1800))].add(request.at.replica)
    assert [len(control) for control in halves] == [2, 2, 2, 2]
    assert set.union(*halves) == {f"p-{number}" for number in range(8)}
    share = mean([dict(request.at.arms)["speculation"] == "control" for request in ended])
    assert share == pytest.approx(0.25, abs=0.02)


def test_who_runs_when_the_arms_rotate_ends_under_the_arm_that_it_came_to() -> None:
    served = pool(Serving(speculation=SPECULATION), groups=4, lever="speculation", control=Serving())
    asked = [unlike(1795.0, number, 100, 3000) for number in range(40)]
    ended = requests(fleet(scenario(served), asked))
    assert len(ended) == 40
    assert {(request.at.speculative_tokens is None, request.verify_steps is None) for request in ended} == {(True, True), (False, False)}
    assert all(request.decode_s > 5 for request in ended)


def test_a_change_of_arms_forgets_what_is_cached_but_not_where_the_lever_needs_no_restart() -> None:
    asked = [arrival(at_s, range(64), output=2) for at_s in (1700.0, 1750.0, 1900.0, 1950.0)]
    for lever, kept in (("speculation", True), ("weight_quantization", False)):
        control = Serving(kv_bits=8)
        ended = requests(fleet(scenario(pool(groups=2, lever=lever, control=control, control_every=2)), asked * 20))
        first = [request for request in ended if request.started_ns == 1900 * NS]
        assert (min(request.cached_tokens for request in first) > 0) == kept


def test_requests_go_to_the_less_loaded_of_two() -> None:
    ended = requests(fleet(scenario(pool(groups=8)), steady(0.05, 100)))
    counts = Counter(request.at.replica for request in ended)
    assert len(counts) == 8
    assert max(counts.values()) < 1.3 * min(counts.values())


def conversations(tenants: int, per_s: float, until_s: float, skew: float) -> list[Arrival]:
    """Tenants, the first of them with the most requests, each with a long beginning of its own."""
    rng = np.random.default_rng(1)
    share = np.arange(1, tenants + 1) ** -skew
    moments = np.cumsum(rng.exponential(1 / per_s, int(per_s * until_s))).tolist()
    who = rng.choice(tenants, size=len(moments), p=share / share.sum()).tolist()
    return [
        arrival(
            at_s,
            [*range(tenant << 30, (tenant << 30) + 200), (tenant << 30) + 10_000 + number],
            output=100,
            tenant=f"t{tenant}",
            session=tenant,
        )
        for number, (at_s, tenant) in enumerate(zip(moments, who, strict=True))
    ]


def routed(affinity: Affinity | None, skew: float, per_s: float = 12.0, groups: int = 6) -> tuple[list[Request], list[Reading]]:
    served = pool(Serving(affinity=affinity, kv_tokens=40_000, max_sequences=12), groups=groups, hardware="a100")
    return looked_at(fleet(scenario(served), conversations(40, per_s, 120, skew)), 250)


def hit_ratio(ended: Sequence[Request]) -> float:
    return sum(request.cached_tokens for request in ended) / sum(request.prompt_tokens for request in ended)


def hottest(readings: Sequence[Reading]) -> float:
    """The busiest replica's load relative to the mean."""
    loads: dict[str, float] = {}
    for reading in readings:
        loads[reading.of.replica] = loads.get(reading.of.replica, 0.0) + reading.running + reading.waiting
    return max(loads.values()) / mean(list(loads.values()))


def test_affinity_finds_more_in_the_cache_than_chance_does() -> None:
    ended = {by: routed(Affinity(by=by) if by else None, skew=0.3)[0] for by in ("session", "tenant", None)}  # type: ignore[arg-type]
    assert hit_ratio(ended["session"]) > hit_ratio(ended[None]) + 0.1
    assert hit_ratio(ended["tenant"]) > hit_ratio(ended[None]) + 0.1
    for name in ("session", "tenant"):
        homes = {(request.tenant, request.at.replica) for request in ended[name]}
        assert len(homes) == len({tenant for tenant, _ in homes})


def test_a_tenant_with_most_of_the_load_makes_its_replica_hot_and_a_cap_spreads_it() -> None:
    hot, capped, evenly = (
        routed(affinity, skew=2.0, per_s=20) for affinity in (Affinity(by="tenant"), Affinity(by="tenant", cap=1.25), None)
    )
    assert hottest(hot[1]) > 2.5 > 1.8 > hottest(capped[1]) > hottest(evenly[1])
    ttft_s = [float(np.quantile([request.ttft_s for request in ended], 0.95)) for ended, _ in (hot, capped, evenly)]
    assert ttft_s[0] > 2 * ttft_s[1]
    assert hit_ratio(capped[0]) > hit_ratio(evenly[0])


def test_when_a_replica_is_not_among_the_takers_few_prefixes_move() -> None:
    served = pool(
        Serving(affinity=Affinity(by="tenant")),
        groups=5,
        lever="affinity",
        control=Serving(affinity=Affinity(by="tenant")),
        control_every=5,
    )
    asked = [arrival(number * 0.4, range(number << 20, (number << 20) + 8), output=5, tenant=f"t{number % 50}") for number in range(9000)]
    ended = [request for request in requests(fleet(scenario(served), asked)) if dict(request.at.arms)["affinity"] == "treated"]
    first, second = (
        {request.tenant: request.at.replica for request in ended if request.started_ns // (1800 * NS) == half} for half in (0, 1)
    )
    moved = [tenant for tenant in first if first[tenant] != second[tenant]]
    assert moved
    assert all(first[tenant] == "p-1" or second[tenant] == "p-0" for tenant in moved)  # the one that went, the one that came back
    assert "p-0" not in first.values()
    assert "p-1" not in second.values()


# Prefill and decode apart


def split(local_below_tokens: int = 0, link_bytes_per_s: float = 25e9, prefill: int = 1, decode: int = 1) -> Serving:
    return Serving(
        split=Split(
            prefill=prefill, decode=decode, link_bytes_per_s=link_bytes_per_s, link_latency_s=0.002, local_below_tokens=local_below_tokens
        )
    )


def test_what_is_read_elsewhere_comes_over_the_link_and_takes_its_bytes_at_the_links_rate() -> None:
    [request] = requests(fleet(scenario(pool(split())), [unlike(1.0, 1, 4000, 50)]))
    assert request.prefill_at is not None
    assert (request.prefill_at.replica, request.prefill_at.role, request.at.replica, request.at.role) == ("p-0", "prefill", "p-1", "decode")
    assert request.kv_transfer_bytes == 4000 * 131_072
    assert request.kv_transfer_s == pytest.approx(0.002 + 4000 * 131_072 / 25e9)


def test_what_the_decode_worker_has_already_is_not_sent_again() -> None:
    asked = [arrival(at_s, [*range(100), number], output=5) for number, at_s in ((1000, 1.0), (2000, 9.0))]
    first, second = requests(fleet(scenario(pool(split())), asked))
    assert first.kv_transfer_bytes == 101 * 16 * 131_072
    assert second.kv_transfer_bytes == 16 * 131_072
    assert second.cached_tokens == 1600


def test_transfers_queue_on_a_link() -> None:
    asked = [unlike(1.0, number, 1000, 20) for number in range(8)]
    slow = requests(fleet(scenario(pool(Serving(split=split(link_bytes_per_s=1e9).split, chunk_tokens=1 << 20, max_sequences=64))), asked))
    alone_s = 0.002 + 1000 * 131_072 / 1e9
    waits = sorted(request.kv_transfer_s or 0.0 for request in slow)
    assert waits[0] == pytest.approx(alone_s, rel=0.01)
    assert waits[-1] == pytest.approx(7 * alone_s, rel=0.15)
    link = Link(1e9, 0.5)
    assert [link.moved_s(1.0, 1e9), link.moved_s(1.0, 0), link.moved_s(9.0, 2e9)] == [2.5, 3.0, 11.5]


def test_a_link_at_its_limit_obeys_littles_law_and_bounds_throughput() -> None:
    asked = steady(0.1, 300, prompt=1000, output=3)
    ended, readings = looked_at(fleet(scenario(pool(split(link_bytes_per_s=1.6e9)), scrape_s=0.037), asked), 400)
    moving = sum(reading.transferring for reading in readings) * 0.037
    assert moving == pytest.approx(sum(request.kv_transfer_s or 0.0 for request in ended), rel=0.01)
    swamped, _ = looked_at(fleet(scenario(pool(split(link_bytes_per_s=1e9))), asked), 300)
    assert len(swamped) / 300 == pytest.approx(1 / (0.002 + 1000 * 131_072 / 1e9), rel=0.03)


def test_short_prompts_and_those_that_are_cached_are_read_where_they_are_decoded() -> None:
    shared = tuple(range(200))
    asked = [
        unlike(1.0, 1, 499, 5),
        unlike(2.0, 2, 500, 5),
        arrival(3.0, shared, output=5),
        arrival(9.0, [*shared, 900], output=5),
    ]
    ended = requests(fleet(scenario(pool(split(local_below_tokens=500))), asked))
    assert [request.prefill_at is None for request in ended] == [True, False, False, True]
    assert [request.kv_transfer_s is None for request in ended] == [True, False, False, True]


def test_apart_long_prompts_do_not_disturb_decoding() -> None:
    asked = sorted([*steady(0.5, 200, prompt=8000, output=2), *(unlike(number * 2 + 0.1, 5000 + number, 16, 300) for number in range(100))])
    apart, together = (requests(fleet(scenario(pool(serving, groups=groups)), asked)) for serving, groups in ((split(), 1), (Serving(), 1)))
    tpot_s = [mean([request.decode_s / 299 for request in ended if request.output_tokens == 300]) for ended in (apart, together)]
    assert tpot_s[0] < 0.9 * tpot_s[1]


def test_a_group_that_is_split_in_turn_serves_as_a_whole_and_is_split_again() -> None:
    served = pool(split(), groups=2, lever="disaggregation", control=Serving(), control_every=2)
    asked = [
        unlike(moment + number * 0.01, int(moment) * 100 + number, 3000, 400) for moment in (1798.0, 3598.0, 5398.0) for number in range(60)
    ]
    ended, readings = looked_at(fleet(scenario(served), asked), 7000)
    assert len(ended) == len(asked)
    roles = {(reading.of.replica, reading.of.role) for reading in readings}
    assert {role for replica, role in roles if replica == "p-0"} == {"prefill", "unified"}
    assert {role for replica, role in roles if replica == "p-1"} == {"decode", "unified"}
    assert all((request.prefill_at is not None) == (dict(request.at.arms)["disaggregation"] == "treated") for request in ended)
    assert all(reading.running + reading.waiting + reading.transferring == 0 for reading in readings[-4:])


def test_what_a_scenario_changes_of_a_pool_counts_from_its_hour_on() -> None:
    changes = (
        Change(knob="acceptance", of="p", from_hour=0.5, factor=0.5),
        Change(knob="link_bytes_per_s", of="q", from_hour=0.5, factor=0.1),
        Change(knob="wire_bytes_per_s", of="r", from_hour=0.5, factor=0.01),
    )
    pools = (pool(Serving(speculation=SPECULATION)), pool(split(), name="q"), pool(Serving(tensor_parallel=4), name="r"))
    asked = [
        unlike(moment, number, 2000, 400)._replace(pool=of) for moment in (1000.0, 2800.0) for number, of in enumerate("pqr", int(moment))
    ]
    ended = {
        (request.at.replica[0], request.started_ns < 1800 * NS): request
        for request in requests(fleet(scenario(*pools, changes=changes), asked))
    }
    assert (ended["p", False].accepted_tokens or 0) < 0.6 * (ended["p", True].accepted_tokens or 0)
    assert (ended["q", False].kv_transfer_s or 0) > 5 * (ended["q", True].kv_transfer_s or 1)
    assert ended["r", False].prefill_s > 1.5 * ended["r", True].prefill_s
