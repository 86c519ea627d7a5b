"""Stored cells of every scenario with a control arm, one seed each: evidence finds what harms in time, and accuses nobody else.

`make calibrate` plays twenty seeds of each (docs/statistics.md); `benchmarks/calibrate_scenarios.py --store DIR` writes these files.
"""

from __future__ import annotations

from pathlib import Path

import demo_truths
import msgspec
import polars as pl
import pytest
from demo_cells import KEYS, RAW, cells
from demo_plays import TWIN, named, plays
from demo_trial import Fared, trial
from demo_watch import Stream, watch
from demo_wired import wired_cells

from demo import scenarios
from demo.scenarios.layout import Scenario
from pipeline.evidence_families import SUMS
from pipeline.measure import REQUESTS

STORED = Path(__file__).parent / "golden" / "cells"
NAMES = [play.name for name in scenarios.names() for play in plays(scenarios.load(name))]
HARMFUL = [name for name in NAMES if not name.endswith(TWIN) and demo_truths.harmful(named(name).scenario)]
APART = "@"
MOST_ALONE = 0.05
"""Accusations of a stream on its own, per stream and cycle: what is promised."""


@pytest.fixture(scope="module")
def fared() -> dict[str, list[Fared]]:
    """How the streams of each play fared. All plays are watched together, each with levers of its own."""
    found = {name: pl.read_parquet(STORED / f"{name}.parquet") for name in NAMES}
    apart = [frame.with_columns(pl.concat_str("lever", pl.lit(APART + name)).alias("lever")) for name, frame in found.items()]
    watched = watch(pl.concat(apart).sort("block_started_at", *KEYS[:4]))
    told: dict[str, list[Fared]] = {}
    for name, frame in found.items():
        mine = {_plain(stream): said for stream, said in watched.items() if stream.lever.partition(APART)[2] == name}
        play = named(name)
        told[name] = trial(play.scenario, frame, mine, is_twin=play.is_twin)
    return told


def _plain(stream: Stream) -> Stream:
    return stream._replace(lever=stream.lever.partition(APART)[0])


def test_every_scenario_with_a_control_arm_has_its_cells_stored() -> None:
    assert sorted(path.stem for path in STORED.glob("*.parquet")) == sorted(NAMES)


@pytest.mark.parametrize("name", HARMFUL)
def test_harm_is_found_in_its_segment_within_the_stated_delay(name: str, fared: dict[str, list[Fared]]) -> None:
    found = {(one.lever, one.segment, one.metric): one.found for one in fared[name] if one.found}
    assert len(found) == len(demo_truths.harmful(named(name).scenario))
    late = [stream for stream, times in found.items() if times[0].at.latched is None]
    assert late == []


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith(TWIN)])
def test_a_lever_that_is_said_to_gain_is_never_accused(name: str, fared: dict[str, list[Fared]]) -> None:
    assert [one for one in fared[name] if one.is_stated and one.harm.alone is not None] == []


def test_levers_that_do_nothing_are_accused_no_more_often_than_promised(fared: dict[str, list[Fared]]) -> None:
    twins = [one for name, streams in fared.items() if name.endswith(TWIN) for one in streams]
    sides = [side for one in twins for side in (one.harm, one.benefit)]
    assert len(twins) > 20
    assert sum(side.alone is not None for side in sides) <= MOST_ALONE * len(sides)


def test_no_action_is_latched_for_levers_that_do_nothing(fared: dict[str, list[Fared]]) -> None:
    twins = [(name, one) for name, streams in fared.items() if name.endswith(TWIN) for one in streams]
    assert [(name, one) for name, one in twins if one.harm.latched is not None or one.benefit.latched is not None] == []


def test_what_is_stated_to_gain_is_among_what_is_watched(fared: dict[str, list[Fared]]) -> None:
    unseen = [name for name in NAMES if demo_truths.innocent(named(name).scenario) and not any(one.is_stated for one in fared[name])]
    assert unseen == []


def test_cells_made_without_the_wire_are_those_that_come_over_it() -> None:
    scenario = _of_all_ways()
    ours, theirs = cells(scenario, 1, 0.0, 0.25), wired_cells(scenario, 1, 0.0, 0.25)
    assert set(ours["metric"]) == {REQUESTS, *RAW}
    both = ours.join(theirs, on=KEYS, how="full", suffix="_wired")
    assert both.null_count().sum_horizontal().item() == 0
    assert both["n"].to_list() == both["n_wired"].to_list()
    for (metric,), found in both.group_by("metric"):
        # The span of one of the engines ends a millisecond before the request does: it shows in whole times alone.
        for name in SUMS[1:]:
            assert found[name].to_list() == pytest.approx(found[f"{name}_wired"].to_list(), rel=1e-3 if metric == "e2e_s" else 1e-6)


def _of_all_ways() -> Scenario:
    """Engines with control arms, whole and split."""
    whole, split = scenarios.load("all-well"), scenarios.load("split-pays")
    return msgspec.structs.replace(whole, pools=whole.pools + split.pools, traffic=whole.traffic + split.traffic)
