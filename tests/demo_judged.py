"""A scenario's effects and scores in, what policies make of them out: its flips and verdicts, by the run that serves."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import polars as pl
from demo_cells import BEGAN, BEGAN_NS
from demo_effects import History
from demo_plays import LIMIT_HOURS, lead_hours

from alerts import run
from alerts.chain import Policy
from demo.evaluating import scores
from demo.records import Score
from demo.scenarios.layout import Scenario
from queries.store import Store

METHOD = "paired_blocks_window"
LEAD_HOURS, MOST_HOURS = 5.0, 7.0
"""Before hour 0 where there is no control arm; and after it, where the stated delays ask for no more."""
TABLES = ("effects", "evaluations", "settings_in_use", "closed_blocks", "policies", "verdicts", "current_verdicts", "flips")
FLIPS = """
select policy, lever, segment, state_before, state_after, action, shadow, decided_at,
    epoch(decided_at - $began) / 3600 as hour, json_extract_string(notice, '$.reason_code') as reason_code, reason
from flips order by decided_at, policy, segment
"""


def span(scenario: Scenario) -> tuple[float, float]:
    """The hours that are played: from so long before hour 0 that evidence is there, past the end of every stated delay."""
    armed = any(pool.control is not None for pool in scenario.pools)
    lead = lead_hours(scenario) if armed else LEAD_HOURS
    delays = [(truth.from_hour or 0.0) + (truth.within_hours or 0.0) for truth in scenario.truth if truth.action != "keep"]
    until = max([min(scenario.hours, MOST_HOURS), *delays])
    return max(-lead, until - LIMIT_HOURS), until


def judged(store: Store, scenario: Scenario, seed: int, history: History, policies: Sequence[Policy]) -> pl.DataFrame:
    """The flips that these policies make of a scenario's hours, in order, each with its `hour`; the verdicts stand in the store.

    All that it held of another scenario is gone.
    """
    effects = history.effects.with_columns(pl.lit("treated").alias("arm_a"), pl.lit(METHOD).alias("method"))
    closed = effects.select("until").unique().with_columns(pl.lit(value=False).alias("judged"))
    held = {"effects": effects, "closed_blocks": closed, "settings_in_use": history.settings, "evaluations": scored(scenario, seed)}
    with store.write() as transaction:
        for table in TABLES:
            transaction.execute(f"delete from {table}")
        for table, rows in held.items():
            if len(rows):
                transaction.insert(table, rows)
    run.run(store, policies, BEGAN + timedelta(hours=span(scenario)[1]))
    return store.frame(FLIPS, {"began": BEGAN})


def scored(scenario: Scenario, seed: int) -> pl.DataFrame:
    """The scores of a scenario's suites in the hours that are played, as rows of `evaluations`."""
    first, last = span(scenario)
    told = itertools.takewhile(lambda score: _at(score) <= BEGAN + timedelta(hours=last), scores(scenario, BEGAN_NS, seed, first))
    return pl.DataFrame([_row(number, score) for number, score in enumerate(told)])


def _at(score: Score) -> datetime:
    return BEGAN + timedelta(microseconds=(score.at_ns - BEGAN_NS) // 1000)


def _row(number: int, score: Score) -> dict[str, Any]:
    at = _at(score)
    told = {name: value for name, value in score._asdict().items() if name != "at_ns"}
    return told | {"evaluated_at": at, "received_at": at, "evaluation_id": f"{number:06d}", "sender": "demo"}
