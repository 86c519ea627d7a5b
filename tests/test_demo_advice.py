"""Stored effects of every scenario, one seed each: shipped policies advise what its file states, in time, and nothing else.

`benchmarks/store_advice.py` writes these files: it tells each scenario over the wire to a server's jobs, which takes about half an hour.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import polars as pl
import pytest
from demo_advice import stated, uncalled, unmet
from demo_effects import History, asked, history, rounded
from demo_judged import judged, span

from alerts import policy
from demo import scenarios
from queries.store import Store

STORED = Path(__file__).parent / "golden" / "advice"
SEED = 1
POLICIES = policy.shipped()
ADVISED = [name for name in scenarios.names() if stated(scenarios.load(name))]
WIRED, WIRED_HOURS = "affinity-pays", 2.5


def stored(name: str) -> History:
    """What a file keeps of a scenario."""
    return History(pl.read_parquet(STORED / f"{name}.parquet"), pl.read_parquet(STORED / f"{name}.settings.parquet"))


@pytest.fixture(scope="module")
def flips(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, object]]]:
    """The flips of each scenario, in order."""
    store = Store(tmp_path_factory.mktemp("judged"))
    try:
        return {name: judged(store, scenarios.load(name), SEED, stored(name), POLICIES).to_dicts() for name in scenarios.names()}
    finally:
        store.close()


def test_every_scenario_has_what_policies_read_stored() -> None:
    kept = msgspec.json.decode((STORED / "asked.json").read_bytes())
    missing = {lever: sorted(set(names) - set(kept.get(lever, ()))) for lever, names in asked(POLICIES).items()}
    assert {lever: names for lever, names in missing.items() if names} == {}, "benchmarks/store_advice.py stores what policies ask for now"


@pytest.mark.parametrize("name", ADVISED)
def test_a_scenario_gets_the_advice_that_its_file_states_within_the_stated_delay(name: str, flips: dict[str, list[dict]]) -> None:
    assert unmet(scenarios.load(name), flips[name]) == []


@pytest.mark.parametrize("name", scenarios.names())
def test_nothing_is_advised_that_a_scenario_does_not_call_for(name: str, flips: dict[str, list[dict]]) -> None:
    assert uncalled(scenarios.load(name), flips[name]) == []


def test_what_is_stored_is_what_comes_over_the_wire() -> None:
    scenario = scenarios.load(WIRED)
    first, _ = span(scenario)
    fresh = rounded(history(scenario, SEED, first, first + WIRED_HOURS, POLICIES).effects)
    kept = stored(WIRED).effects.filter(pl.col("until") <= fresh["until"].max())
    assert fresh.rows() == kept.select(fresh.columns).rows()
