"""Who serves a segment, how much traffic is in it and what that loses: of cells and requests as they are stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from around_judging import BLOCK, SEGMENT, START, end, serve
from lever_cells_rows import put

from alerts import notice_commands
from alerts.chain import Policy, Rollback
from alerts.policy import shipped
from alerts.served import Served, served
from queries.store import Store

SHIPPED = {policy.lever: policy for policy in shipped()}
POLICY = msgspec.structs.replace(
    SHIPPED["speculation"],
    rollback=Rollback(steps=("drain",), engine={"vllm": ("shorten: fewer", "disable: none"), "sglang": "no flags"}),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Two hours: 300 requests a block of 7 treated replicas, which take 2.5 s, and 20 of one in control, which take 2 s."""
    opened = Store(tmp_path_factory.mktemp("served"))
    rows = [row for block in range(24) for row in _block(block)]
    put(opened, rows)
    serve(opened, 23, 10, {"speculation": "ngram"}, {"speculation": "treated"}, replica="t0", engine="vllm", gateway="llm-d")
    serve(opened, 23, 5, {"speculation": "off"}, {"speculation": "control"}, replica="c0", engine="sglang", gateway=None)
    yield opened
    opened.close()


def _block(block: int) -> list[dict[str, Any]]:
    arms = [("treated", f"t{number}", 60.0 - 5 * number, 2.5) for number in range(7)] + [("control", "c0", 20.0, 2.0)]
    common = {"segment": SEGMENT, "lever": "speculation", "block_started_at": START + BLOCK * block, "num_sq": 0.0, "den_sq": 0.0}
    return [
        {**common, "arm": arm, "replica": replica, "metric": metric, "n": n, "num": n * mean, "den": n, "num_den": 0.0}
        for arm, replica, n, mean_s in arms
        for metric, mean in (("requests", 0.0), ("e2e_s", mean_s))
    ]


def found(store: Store, segment: str = SEGMENT) -> Served | None:
    return served(store, "speculation", segment, None, end(23))


def test_the_replicas_of_the_treated_arm_are_named_busiest_first(store: Store) -> None:
    told = found(store).plain()["served_by"]  # type: ignore[union-attr]
    assert told == {"engines": ["llm-d", "vllm"], "arm": "treated", "replicas": ["t0", "t1", "t2", "t3", "t4"], "more_replicas": 2}


def test_shares_rates_and_losses_are_those_of_the_treated_arm(store: Store) -> None:
    impact = found(store).plain()["impact"]  # type: ignore[union-attr]
    treated = sum(60 - 5 * number for number in range(7))
    assert impact["requests_per_hour"] == treated * 12
    assert impact["share_of_segment"] == pytest.approx(treated / (treated + 20), rel=1e-3)
    assert (impact["lost_s_per_1k_requests"], impact["lost_s_per_hour"]) == (500.0, treated * 12 * 0.5)
    assert (impact["since"], impact["until"]) == ("2026-03-02T00:00:00Z", "2026-03-02T02:00:00Z")


def test_a_segment_without_requests_is_served_by_nobody(store: Store) -> None:
    assert found(store, '{"model":"else"}') is None


def test_only_commands_of_the_engine_that_serves_are_given(store: Store) -> None:
    commands, note = notice_commands.commands(POLICY, "disable", found(store).engines)  # type: ignore[union-attr]
    assert commands == [{"engine": "vllm", "text": "none"}]
    assert note == "of what serves the segment: vllm"


@pytest.mark.parametrize(
    ("engines", "said"),
    [((), "which engine serves is not known: those of all engines"), (("tgi",), "the policy has none for tgi, which serves the segment: ")],
)
def test_where_the_engine_tells_nothing_all_commands_are_given_and_that_is_said(engines: tuple[str, ...], said: str) -> None:
    commands, note = notice_commands.commands(POLICY, "shorten", engines)
    assert [row["engine"] for row in commands] == ["sglang", "vllm"]
    assert note is not None and note.startswith(said)


def test_a_silence_is_for_this_stream_alone_and_safe_to_paste() -> None:
    segment = json.dumps({"model": "it's $(reboot)", "topology": "tp4"})
    line = notice_commands.how_to(POLICY, segment, "f1", "https://lw.example")["silence"]
    assert line == (
        "leverwatch silence add --lever speculation --policy speculation-net-itl"
        " --segment 'model=it'\"'\"'s $(reboot)' --segment topology=tp4 --for 8h --url https://lw.example"
    )


def test_what_verifies_a_notice_is_fed_with_its_flip() -> None:
    told = notice_commands.how_to(POLICY, "{}", "f1", "https://lw.example")["verify"]
    assert told == "curl -s 'https://lw.example/api/flips?flip_id=f1' | leverwatch verify - --url https://lw.example"
    assert notice_commands.how_to(POLICY, "{}", "f1", "")["verify"] == "leverwatch verify NOTICE.json"


@pytest.mark.parametrize(
    ("action", "step"),
    [
        ("shorten", "Restart it with fewer drafts, down to one."),
        ("disable", "Restart it without speculation."),
    ],
)
def test_steps_are_those_of_the_action_that_is_advised(action: Any, step: str) -> None:
    told = notice_commands.steps(SHIPPED["speculation"], action)
    assert told[:2] == ["Take one replica of the segment out of rotation and drain it.", step]
    assert "Do not switch it off in place" in told[2]
    assert not [one for one in told if "dvised to" in one]


@pytest.mark.parametrize(
    ("lever", "action", "word", "other"),
    [
        ("pool_ratio", "add_prefill", "prefill worker", "Start another decode"),
        ("conditional_prefill", "raise_threshold", "Double it", "Halve"),
        ("conditional_prefill", "lower_threshold", "Halve", "Double it"),
    ],
)
def test_steps_of_another_action_are_left_out(lever: str, action: Any, word: str, other: str) -> None:
    told = " ".join(notice_commands.steps(SHIPPED[lever], action))
    assert word in told
    assert other not in told


def test_to_turn_a_lever_on_again_is_not_told_as_to_turn_it_off() -> None:
    told = " ".join(notice_commands.steps(SHIPPED["prefix_caching"], "enable"))
    assert "without the prefix cache" not in told
    assert "leverwatch.arm.prefix_caching = treated" in told


@pytest.mark.parametrize("policy", shipped(), ids=lambda policy: policy.name)
def test_every_action_of_a_shipped_policy_has_steps(policy: Policy) -> None:
    for action in {trigger.action for trigger in policy.disable_when}:
        assert len(notice_commands.steps(policy, action)) >= 2, action
