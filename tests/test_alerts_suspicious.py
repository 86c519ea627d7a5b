"""Effects whose requests fell into traps: neither a trigger nor a recovery is read from them, and the stream keeps its state."""

from __future__ import annotations

from typing import Any

import pytest
from test_alerts_judge import BLOCK, SPECULATION, T0, gain, healthy, play, premise, uncontrolled

from alerts.conditions import MOST_TRAPPED
from alerts.effects import Effect
from alerts.judge import Standing

TRAP = {"trap": "hits_of_preempted", "upstream": "vllm#25780"}
HARM = gain(-0.3, -0.2)


def trapped(effect: Effect, share: float = 0.34) -> Effect:
    return effect._replace(**TRAP, trapped_share=share)


def blocks(effect: Effect, **others: Any) -> list[dict[str, Effect]]:
    return [healthy(SPECULATION) | {"net_itl_s": effect} | others] * 20


def test_harm_that_is_read_from_trapped_requests_changes_nothing() -> None:
    assert play(SPECULATION, blocks(HARM))[-1].state == "off_recommended"
    said = play(SPECULATION, blocks(trapped(HARM)))
    assert {(one.verdict, one.action, one.reason_code, one.state, one.state_since) for one in said} == {
        ("frozen", "hold", "suspicious_input", "on", T0)
    }
    assert said[0].reason == "net ITL: 34 % of requests fell into the trap hits_of_preempted (vllm#25780), 10 % may"


def test_a_lever_that_is_off_stays_off_while_its_recovery_is_read_from_trapped_requests() -> None:
    off = Standing("off_recommended", T0 - 100 * BLOCK, cause="harm")
    assert play(SPECULATION, blocks(gain(0.2, 0.3)), off)[-1].state == "on"
    said = play(SPECULATION, blocks(trapped(gain(0.2, 0.3))), off)
    assert {(one.verdict, one.reason_code, one.state) for one in said} == {("frozen", "suspicious_input", "off_recommended")}


@pytest.mark.parametrize("share", [0.0, MOST_TRAPPED, None])
def test_few_trapped_requests_are_no_ground_to_wait(share: float | None) -> None:
    assert play(SPECULATION, blocks(trapped(HARM, share)))[-1].state == "off_recommended"


def test_without_control_a_premise_that_is_read_from_trapped_requests_is_frozen_and_disables_nothing() -> None:
    alone = {"net_itl_s": uncontrolled("net_itl_s", 0.03)}
    lost = premise("acceptance_length", 1.0)
    whole = [healthy(SPECULATION) | alone | {"acceptance_length": lost}] * 20
    assert play(SPECULATION, whole)[-1].state == "off_recommended"
    said = play(SPECULATION, [one | {"acceptance_length": trapped(lost)} for one in whole])
    assert {(one.verdict, one.reason_code, one.state) for one in said} == {("frozen", "suspicious_input", "on")}


def test_with_control_a_trapped_premise_keeps_no_verdict_from_being_given() -> None:
    said = play(SPECULATION, blocks(gain(0.1, 0.2), acceptance_length=trapped(premise("acceptance_length", 1.0))))
    assert {one.verdict for one in said} == {"keep"}
