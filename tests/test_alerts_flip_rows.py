"""What a notice adds to a change of state: the commands of its action, and the replica that makes the errors."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from around_judging import BLOCK, SEGMENT, START
from lever_cells_rows import put
from test_alerts_judge import SPECULATION, effect

from alerts.chain import Rollback
from alerts.culprits import told
from alerts.flip_rows import flip_rows
from alerts.notice import Flip, notice
from alerts.standing import Judgment, Standing
from queries.store import Store

NOW = datetime(2026, 3, 5, tzinfo=UTC)
ROLLBACK = Rollback(steps=("drain",), engine={"vllm": ("shorten: fewer drafts", "disable: no drafts"), "sglang": "remove the flags"})
POLICY = msgspec.structs.replace(SPECULATION, rollback=ROLLBACK)


def flip(action: Any, state: Any = "off_recommended", code: str = "harm", before: Standing | None = None) -> Flip:
    judgment = Judgment("disable", action, code, "because", state, NOW, 0)
    return Flip(POLICY, SEGMENT, before or Standing("on", START), judgment, NOW)


@pytest.mark.parametrize(
    ("action", "vllm", "sglang"),
    [
        ("shorten", "fewer drafts", "remove the flags"),
        ("disable", "no drafts", "remove the flags"),
        ("reduce", "shorten: fewer drafts; disable: no drafts", "remove the flags"),
        ("enable", "undo: shorten: fewer drafts; disable: no drafts", "undo: remove the flags"),
    ],
)
def test_commands_are_those_of_the_action_that_is_advised(action: str, vllm: str, sglang: str) -> None:
    commands = {row["engine"]: row["text"] for row in notice(flip(action), (), None, NOW)["commands"]}
    assert commands == {"vllm": vllm, "sglang": sglang}


@pytest.mark.parametrize("action", ["keep", "hold", "widen"])
def test_what_asks_for_no_change_of_an_engine_gives_no_command(action: str) -> None:
    assert notice(flip(action), (), None, NOW)["commands"] == []


def test_a_notice_without_sums_says_why() -> None:
    said = notice(flip("disable"), (), None, NOW)
    assert said["query"] is None
    assert "no sums of two arms" in said["query_note"]


def test_a_recommendation_that_is_over_matters_as_much_as_it_did() -> None:
    quality = next(trigger for trigger in POLICY.disable_when if trigger.metric == "quality")
    assert quality.severity == "critical" != POLICY.severity
    there = Standing("off_recommended", START, cause="quality")
    assert flip("disable", code="quality").severity == flip("keep", "on", "recovered", there).severity == "critical"
    assert flip("disable").severity == POLICY.severity


@pytest.mark.parametrize(
    ("replicas", "named"),
    [
        ([("r3", 96.0, 120.0), ("r1", 2.0, 440.0), ("r2", 2.0, 440.0)], True),
        ([("r3", 70.0, 120.0), ("r1", 30.0, 440.0)], False),
        ([("r3", 96.0, 600.0), ("r1", 4.0, 440.0)], False),
        ([("r3", 96.0, 120.0)], False),
        ([("r3", 5.0, 120.0), ("r1", 0.0, 440.0)], False),
        ([], False),
    ],
)
def test_one_replica_that_makes_most_errors_of_few_requests_is_named(replicas: list[tuple[str, float, float]], named: bool) -> None:
    said = told(replicas)
    assert said == ("96 % of the errors are of replica r3, which has 12 % of the requests" if named else None)


def test_a_lever_that_is_accused_of_errors_says_which_replica_they_are_of(store: Store) -> None:
    errors = next(trigger for trigger in POLICY.disable_when if trigger.metric == "ttft_s")
    accusing = msgspec.structs.replace(errors, metric="error_rate", relative_to_control=2.0)
    policy = msgspec.structs.replace(POLICY, disable_when=(accusing,))
    common = {"segment": SEGMENT, "lever": "speculation", "arm": "treated", "block_started_at": START, "metric": "error_rate"}
    sums = {"num_sq": 0.0, "den_sq": 0.0, "num_den": 0.0}
    rows = [common | sums | {"replica": name, "n": 200, "num": bad, "den": 200.0} for name, bad in (("a", 150.0), ("b", 1.0), ("c", 0.0))]
    put(store, rows)
    decisive = effect("error_rate", since=START, until=START + BLOCK)
    changed = flip("disable", code="failure_mode")._replace(policy=policy)
    [row] = flip_rows(store, [(changed, {"error_rate": decisive})], NOW, "")
    assert row["reason"] == "because; 99 % of the errors are of replica a, which has 33 % of the requests"
    assert json.loads(row["notice"])["reason"] == row["reason"]
