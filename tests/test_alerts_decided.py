"""What a reason says of what decided: evidence or an interval, since when, past which limit, and what only describes it."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest

from alerts import decided, effects
from alerts.effects import Effect
from pipeline.metrics import judged

UNTIL = datetime(2026, 3, 2, 12, tzinfo=UTC)
ENOUGH = math.log(3 * effects.BLOCKS_A_CYCLE / effects.ALPHA) + 0.01
SAYS = [ENOUGH] * len(effects.NULLS)


def effect(evidence: list[float] | None = SAYS, low: float = -0.3, high: float = 0.06, **changes: object) -> Effect:
    numbers = (24, 900, 900, 0.0439, 0.0394, (low + high) / 2, low, high)
    usual = {"evidence_below": evidence, "evidence_above": evidence, "tests": 3, "turned_blocks": 15, "turned_gain": -0.15}
    return Effect("net_itl_s", UNTIL - timedelta(hours=2), UNTIL, *numbers, "control", 1.0, None, **usual | changes)


def test_evidence_that_decided_is_told_with_its_time_its_risk_and_its_limit_before_an_interval_that_covers_0() -> None:
    assert decided.by(effect(), "speculation", -0.02, above=False) == (
        "net ITL is more than 2 % worse than control's: evident since 10:45 UTC (gain -15 % since then), a false call on at most 5 % of "
        "days in all 3 segments of speculation; as a description only, 10:00 to 12:00 UTC as a whole: "
        "net ITL 43.9 ms against 39.4 ms in control, gain -12 % (-30..+6 %), 24 blocks"
    )


def test_an_interval_that_says_the_same_is_not_called_a_description() -> None:
    assert "as a description" not in decided.by(effect(high=-0.05), "speculation", -0.02, above=False)


def test_where_no_evidence_is_kept_the_interval_decided_and_is_said_to() -> None:
    said = decided.by(effect(None, high=-0.05, turned_blocks=0), "speculation", -0.02, above=False)
    assert said.startswith(
        "net ITL is more than 2 % worse than control's: the whole interval over 10:00 to 12:00 UTC is past that; net ITL 43.9"
    )
    assert "evident" not in said


def test_a_limit_past_the_outermost_null_is_told_by_the_interval_and_evidence_together() -> None:
    said = decided.by(effect(low=-0.5, high=-0.3), "speculation", -0.25, above=False)
    assert (
        "more than 25 % worse than control's: the whole interval over 10:00 to 12:00 UTC is past that, and evidence says the same" in said
    )


def test_a_turn_that_lost_less_than_the_limit_since_is_not_the_time_of_that_loss() -> None:
    assert "evident, a false call" in decided.by(effect(turned_gain=-0.07), "conditional_prefill", -0.1, above=False)


def test_contrasts_of_several_blocks_reach_further_back_and_yesterday_has_its_date() -> None:
    said = decided.by(effect(blocks_together=12), "speculation", -0.02, above=False)
    assert "evident since 1 Mar 21:00 UTC" in said


@pytest.mark.parametrize(
    ("limit", "above", "words"),
    [
        (0.0, False, "net ITL is worse than control's"),
        (0.0, True, "net ITL is better than control's"),
        (0.05, True, "net ITL is more than 5 % better than control's"),
        (0.05, False, "net ITL is less than 5 % better than control's"),
        (-0.1, True, "net ITL is less than 10 % worse than control's"),
    ],
)
def test_a_limit_reads_as_words_on_either_side_of_0(limit: float, above: bool, words: str) -> None:
    assert decided.by(effect(), "speculation", limit, above=above).startswith(f"{words}: evident")


def test_a_premise_that_evidence_decided_is_told_apart_from_its_value_over_the_window() -> None:
    one = effect()._replace(metric="acceptance_length", value_a=1.31)
    assert decided.by_premise(one, judged()["acceptance_length"], 1.25, above=False) == (
        "acceptance length is evidently below the threshold of 1.25; 10:00 to 12:00 UTC as a whole: 1.31"
    )


@pytest.mark.parametrize(("number", "said"), [(1, ""), (3, "held for 3 blocks of 5 min, up to 12:00 UTC")])
def test_how_long_a_trigger_held_is_told_where_it_takes_more_than_one_block(number: int, said: str) -> None:
    assert decided.held(number, UNTIL) == said
