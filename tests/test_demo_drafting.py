"""Drafts that are drawn agree with the closed form of independent acceptance, and their counts with each other."""

from __future__ import annotations

import math

import numpy as np
import pytest

from demo.replicas import drafting
from demo.replicas.drafting import Drafted
from demo.replicas.serving import Speculation

SIGMAS = 4.0


def decoded(speculation: Speculation, tokens: int, times: int, temperature: float = 0.0, seed: int = 1) -> list[Drafted]:
    rng, holds = np.random.default_rng(seed), drafting.survival(speculation, temperature)
    return [drafting.drawn(rng, tokens, holds, speculation.coverage) for _ in range(times)]


def closed_form(acceptance: float, draft_tokens: int) -> float:
    """arXiv 2211.17192, equation 1."""
    return (1 - acceptance ** (draft_tokens + 1)) / (1 - acceptance)


def spread(acceptance: float, draft_tokens: int) -> float:
    """The standard deviation of one step's tokens."""
    chances = [acceptance**place * (1 - acceptance) for place in range(draft_tokens)] + [acceptance**draft_tokens]
    mean = sum((place + 1) * chance for place, chance in enumerate(chances))
    return math.sqrt(sum((place + 1 - mean) ** 2 * chance for place, chance in enumerate(chances)))


@pytest.mark.parametrize("draft_tokens", [1, 2, 4, 8])
@pytest.mark.parametrize("acceptance", [0.1, 0.5, 0.8, 0.95])
def test_tokens_per_step_agree_with_the_closed_form_within_sampling_error(acceptance: float, draft_tokens: int) -> None:
    speculation = Speculation(draft_tokens=draft_tokens, acceptance=(acceptance,))
    expected = closed_form(acceptance, draft_tokens)
    assert drafting.tokens_per_step(speculation) == pytest.approx(expected)
    one, many = decoded(speculation, 200_000, 1), decoded(speculation, 300, 800)
    steps = one[0].steps
    error = spread(acceptance, draft_tokens) / math.sqrt(steps)
    assert abs(200_000 / steps - expected) < SIGMAS * error
    accepted, verified = sum(each.accepted for each in many), sum(each.verify_steps for each in many)
    # an answer ends with the step that makes it whole, which is longer than others: by less than the longest step, a request
    bias = draft_tokens * 800 / verified
    assert -SIGMAS * spread(acceptance, draft_tokens) / math.sqrt(verified) < 1 + accepted / verified - expected < bias + SIGMAS * error


def test_positions_hold_as_often_as_those_before_them_let_them() -> None:
    speculation = Speculation(draft_tokens=4, acceptance=(0.9, 0.6, 0.5))
    [only] = decoded(speculation, 100_000, 1)
    held = [accepted / only.verify_steps for accepted in only.accepted_by_position]
    assert held == pytest.approx([0.9, 0.54, 0.27, 0.135], abs=0.01)
    assert drafting.survival(speculation, 0.0).tolist() == pytest.approx([0.9, 0.54, 0.27, 0.135])


def test_a_higher_temperature_accepts_less() -> None:
    speculation = Speculation(draft_tokens=4, acceptance=(0.8,), temperature_slope=0.3)
    at = [drafting.tokens_per_step(speculation, temperature) for temperature in (0.0, 0.7, 1.0)]
    assert at == [pytest.approx(closed_form(0.8 * (1 - 0.3 * temperature), 4)) for temperature in (0.0, 0.7, 1.0)]
    assert drafting.tokens_per_step(speculation, 9.0) == 1


def test_a_step_that_does_not_draft_gives_one_token_and_verifies_nothing() -> None:
    speculation = Speculation(draft_tokens=3, acceptance=(0.7,), coverage=0.4)
    [only] = decoded(speculation, 100_000, 1)
    assert only.verify_steps / only.steps == pytest.approx(0.4, abs=0.01)
    assert 100_000 / only.steps == pytest.approx(drafting.tokens_per_step(speculation), rel=0.01)
    assert only.accepted / only.verify_steps == pytest.approx(closed_form(0.7, 3) - 1, rel=0.02)


@pytest.mark.parametrize("tokens", [0, 1, 2, 7, 100])
def test_steps_are_as_many_as_make_the_answer_whole_and_no_more(tokens: int) -> None:
    for each in decoded(Speculation(draft_tokens=4, acceptance=(0.6,)), tokens, 50):
        assert each.steps <= tokens <= each.steps + each.accepted <= tokens + 4
        assert sorted(each.accepted_by_position, reverse=True) == list(each.accepted_by_position)
        assert (each.steps == 0) == (tokens == 0)


def test_drafts_that_always_or_never_hold_need_no_luck() -> None:
    [always] = decoded(Speculation(draft_tokens=4, acceptance=(1.0,)), 100, 1)
    [never] = decoded(Speculation(draft_tokens=4, acceptance=(0.0,)), 100, 1)
    assert (always.steps, always.accepted_by_position) == (20, (20, 20, 20, 20))
    assert (never.steps, never.verify_steps, never.accepted) == (100, 100, 0)
