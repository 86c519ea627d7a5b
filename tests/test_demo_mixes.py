"""Synthetic traffic is the same for the same seed, and as its mix states it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from demo_fleets import pool, scenario

from demo.scenarios.layout import Change, Day, Mix
from demo.traffic.arrivals import Arrival
from demo.traffic.mixes import BLOCK_S, Mixes


def mix(**changed: Any) -> Mix:
    said = {
        "name": "chat",
        "pool": "p",
        "requests_per_s": 5.0,
        "input_tokens": (256, 4096),
        "output_median_tokens": 150.0,
        "max_tokens": 1000,
    }
    return Mix(**(said | changed))


def arrivals(*mixes: Mix, blocks: int = 12, seed: int = 1, **changed: Any) -> list[Arrival]:
    source = Mixes(scenario(pool(), traffic=mixes, **changed), seed)
    return [arrival for number in range(blocks) for arrival in source.block(number)]


def test_the_same_seed_gives_the_same_requests_and_another_seed_others() -> None:
    assert arrivals(mix()) == arrivals(mix())
    assert {arrival.at_s for arrival in arrivals(mix())}.isdisjoint(arrival.at_s for arrival in arrivals(mix(), seed=2))


def test_a_block_holds_its_five_minutes_in_order_of_time() -> None:
    source = Mixes(scenario(pool(), traffic=(mix(), mix(name="code"))), 1)
    for number in range(-2, 3):
        moments = [arrival.at_s for arrival in source.block(number)]
        assert moments == sorted(moments)
        assert number * BLOCK_S <= moments[0] < moments[-1] < (number + 1) * BLOCK_S


def test_requests_come_at_their_rate_and_by_chance_one_by_one() -> None:
    found = arrivals(mix())
    gaps_s = np.array([after.at_s - before.at_s for before, after in pairwise(found)])
    assert len(found) == pytest.approx(5 * 3600, rel=0.03)
    assert gaps_s.std() == pytest.approx(gaps_s.mean(), rel=0.03)  # exponential


def test_the_rate_follows_the_day_and_what_the_scenario_changes() -> None:
    swinging = Mixes(scenario(pool(), traffic=(mix(),), day=Day(swing=0.5, peak_hour=12)), 1)
    assert len(swinging.block(0)) < 0.45 * len(swinging.block(144))
    own = Mixes(scenario(pool(), traffic=(mix(day=Day()),), day=Day(swing=0.5)), 1)
    assert len(own.block(144)) == pytest.approx(1500, rel=0.1)
    changes = (Change(knob="requests_per_s", of="chat", from_hour=0.5, factor=3),)
    counts = [sum(arrival.at_s // 1800 == half for arrival in arrivals(mix(), changes=changes)) for half in (0, 1)]
    assert counts[1] / counts[0] == pytest.approx(3, rel=0.05)


def test_prompts_and_answers_are_spread_as_stated() -> None:
    found = arrivals(mix(output_sigma=0.6))
    prompts, answers = (np.array([getattr(arrival, name) for arrival in found]) for name in ("prompt_tokens", "output_tokens"))
    assert (prompts.min() >= 256, prompts.max() <= 4096) == (True, True)
    assert np.median(prompts) == pytest.approx(np.sqrt(256 * 4096), rel=0.03)  # log-uniform
    assert np.median(answers) == pytest.approx(150, rel=0.03)
    assert np.log(answers[answers < 1000]).std() == pytest.approx(0.6, rel=0.05)
    assert answers.max() == 1000
    assert answers.min() >= 1


def test_temperatures_are_drawn_from_those_stated_and_can_be_turned_up() -> None:
    changes = (Change(knob="temperature", of="chat", from_hour=0.5, factor=1.5),)
    found = arrivals(mix(temperatures=(0.0, 0.6)), changes=changes)
    before, after = ({arrival.temperature for arrival in found if (arrival.at_s >= 1800) == late} for late in (False, True))
    assert (before, after) == ({0.0, 0.6}, {0.0, 0.9})


def test_the_first_tenants_have_the_more_of_the_traffic_the_more_skew_there_is() -> None:
    shares = []
    for skew in (0.0, 1.0, 2.0):
        found = arrivals(mix(tenant_skew=skew, tenants=10))
        shares.append(sum(arrival.tenant == "tenant-0" for arrival in found) / len(found))
        assert len({arrival.tenant for arrival in found}) == 10
    assert shares == pytest.approx([0.1, 1 / sum(1 / rank for rank in range(1, 11)), 1 / sum(rank**-2 for rank in range(1, 11))], abs=0.015)


def test_a_prompt_has_as_many_blocks_as_its_tokens_fill() -> None:
    for arrival in arrivals(mix(turns=3, system_tokens=100), blocks=2):
        assert len(arrival.blocks) == -(-arrival.prompt_tokens // 16)
        assert len(set(arrival.blocks)) == len(arrival.blocks)


def test_two_mixes_of_a_pool_share_no_blocks() -> None:
    found = arrivals(mix(name="chat", system_tokens=512), mix(name="code", system_tokens=512), blocks=1)
    by_tenant: dict[int, int] = {}
    for arrival in found:
        by_tenant[arrival.blocks[0]] = by_tenant.get(arrival.blocks[0], 0) + 1
    assert len(by_tenant) == 2 * 8
