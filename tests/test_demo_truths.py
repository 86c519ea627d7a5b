"""Every scenario, played into a store: its spans load with full coverage, and what its file says is true is what plain SQL finds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

import msgspec
import pytest
from demo_played import BEGAN, loaded, told

from demo import questions, scenarios
from demo.engines import voices
from demo.fleet import Fleet
from demo.pools import worker_names
from demo.scenarios.layout import Disorder, Scenario
from leverwatch.local import Local
from pipeline.segments import LEVERS

ALWAYS = (
    "prompt_tokens",
    "cached_tokens",
    "output_tokens",
    "ttft_s",
    "queue_s",
    "replica",
    "model",
    "hardware",
    "topology",
    "gpus",
    "levers",
)
LEAST_SAMPLED = 0.98
"""Of levels that are joined from samples: what began before the first look has none."""


STEADY_HOURS, SETTLED_HOURS = 2.0, 1.0
WHOLE = ("peak-only",)
"""Its truths are of a load that rises and falls over all of its hours."""


class Played(NamedTuple):
    scenario: Scenario
    connection: Local
    fleet: Fleet


@pytest.fixture(scope="module", params=scenarios.names())
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    scenario = enough(scenarios.load(request.param))
    with loaded(scenario, tmp_path_factory.mktemp("store")) as (connection, fleet):
        yield Played(scenario, connection, fleet)


def enough(scenario: Scenario) -> Scenario:
    """The scenario until an hour after the last of its truths has come about: its later hours say the same once more.

    Scores that tell no change come once an hour, and their mean takes all of these.
    """
    since = max(since for truth in scenario.truth for since, _ in questions.periods(scenario, truth, BEGAN).values())
    hours = max(STEADY_HOURS, (since - BEGAN) / timedelta(hours=1) + SETTLED_HOURS)
    has_scores_alone = bool(scenario.evaluations) and not scenario.changes
    return scenario if scenario.name in WHOLE or has_scores_alone else msgspec.structs.replace(scenario, hours=min(hours, scenario.hours))


def shares(connection: Local, conditions: dict[str, str], where: str = "true") -> dict[str, float]:
    """The share of the requests that ended well for which each condition holds, where it is not null."""
    asked = ", ".join(f"avg(({condition})::int) as {name}" for name, condition in conditions.items())
    found: dict[str, float] = connection.sql(f"select {asked} from requests where {where} and outcome = 'ok'").to_dicts()[0]
    return found


def test_every_request_served_is_one_row_and_nothing_is_impossible(played: Played) -> None:
    if played.scenario.disorder != Disorder():
        pytest.skip("its telemetry is in disorder: what is to be seen of it has tests of its own")
    assert played.connection.sql("select count(*) as n from requests").item() == played.fleet.requests
    assert played.connection.sql("select * from quarantine").to_dicts() == []
    assert played.connection.sql("select * from suspicions").to_dicts() == []


def test_what_is_judged_by_is_known_of_every_request(played: Played) -> None:
    missing = {column: f"{column} is null" for column in ALWAYS} | {"decode_s": "case when output_tokens > 1 then decode_s is null end"}
    unknown = shares(played.connection, missing)
    if played.scenario.disorder == Disorder():
        assert {column: share for column, share in unknown.items() if share > 0} == {}
    assert all(share < 0.1 for share in unknown.values()), unknown
    for pool in played.scenario.pools:
        known_as = voices.voices()[pool.engine].known_as
        names = [known_as(name) for group in worker_names(pool) for name in group]
        sampled = {column: f"{column} is not null" for column in ("batch_at_admission", "kv_usage")}
        known = sampled | ({"armed": f"arms['{pool.lever}'] is not null"} if pool.control is not None else {})
        found = shares(played.connection, known, f"replica in ({', '.join(map(repr, names))})")
        assert found.pop("armed", 1.0) == 1
        assert min(found.values()) >= LEAST_SAMPLED, (pool.name, found)


def test_the_truth_is_found_by_plain_sql(played: Played) -> None:
    assert played.scenario.truth
    for truth in played.scenario.truth:
        stated = {"before": truth.before} | ({} if truth.after is None else {"after": truth.after})
        found = told(played.connection, played.scenario, truth)
        assert found == pytest.approx(stated, abs=truth.tolerance), (truth.lever, truth.segment, truth.question)


PAYS_AND_NOT = {lever: {"keep", "else"} for lever in LEVERS}


def test_each_lever_has_a_scenario_where_it_pays_and_one_where_its_premise_disappears() -> None:
    truths = [truth for name in scenarios.names() for truth in scenarios.load(name).truth]
    shown = {lever: {"keep" if truth.action == "keep" else "else" for truth in truths if truth.lever == lever} for lever in LEVERS}
    assert shown == PAYS_AND_NOT


@pytest.mark.parametrize("name", scenarios.names())
def test_a_premise_that_disappears_says_from_when_by_how_much_and_what_to_do_within_what_delay(name: str) -> None:
    for truth in scenarios.load(name).truth:
        if truth.action != "keep" and truth.from_hour is not None:
            assert truth.after is not None
            assert truth.within_hours is not None
            assert truth.after != truth.before
