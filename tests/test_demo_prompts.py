"""What prompts hold: equal names of blocks are equal text after equal text, and conversations go on with what they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from demo.scenarios.layout import Mix
from demo.traffic.prompts import OPEN_CONVERSATIONS, Prompt, Prompts, Shape

BLOCK = 16


def drawn(count: int = 4000, tenants: int = 4, wanted: int = 500, *, shape: Shape | None = None, **changed: Any) -> list[Prompt]:
    mix = Mix(name="m", pool="p", requests_per_s=1, input_tokens=(1, 9999), output_median_tokens=1, tenants=tenants, **changed)
    rng = np.random.default_rng(1)
    shape = shape or Shape(longest=5000, system_tokens=160, goes_on=0.75)
    return list(Prompts(mix, BLOCK, 7).drawn(rng, np.full(count, wanted), rng.integers(tenants, size=count), shape))


def common(one: Prompt, other: Prompt) -> int:
    """The blocks that two prompts begin with alike."""
    alike = [left == right for left, right in zip(one.blocks, other.blocks, strict=False)]
    return [*alike, False].index(False)


def test_no_two_prompts_are_alike_beyond_where_they_first_differ() -> None:
    where: dict[int, int] = {}
    for prompt in drawn(500):
        for place, block in enumerate(prompt.blocks):
            assert where.setdefault(block, place) == place


def test_a_conversation_begins_with_its_tenants_own_text_and_shares_no_more_with_another() -> None:
    prompts = drawn()
    by_session = {prompt.session: prompt for prompt in prompts}
    of_one = [prompt for prompt in by_session.values() if prompt.tenant == "tenant-0"]
    other = next(prompt for prompt in by_session.values() if prompt.tenant == "tenant-1")
    assert {common(of_one[0], prompt) for prompt in of_one[1:50]} == {160 // BLOCK}
    assert common(of_one[0], other) == 0


def test_a_conversation_goes_on_with_all_full_blocks_that_it_had() -> None:
    last: dict[int, Prompt] = {}
    grown = []
    for prompt in drawn(turn_tokens=200):
        before = last.get(prompt.session)
        if before is not None:
            assert prompt.tenant == before.tenant
            assert common(before, prompt) == before.tokens // BLOCK
            grown.append(prompt.tokens - before.tokens)
        last[prompt.session] = prompt
    assert min(grown) > 0
    assert sum(grown) / len(grown) == pytest.approx(200, rel=0.1)


def test_conversations_are_as_long_as_the_share_that_goes_on_makes_them() -> None:
    prompts = drawn(shape=Shape(longest=10**9, system_tokens=0, goes_on=0.75))
    assert len(prompts) / len({prompt.session for prompt in prompts}) == pytest.approx(4, rel=0.1)
    alone = drawn(shape=Shape(longest=10**9, system_tokens=0, goes_on=0.0))
    assert len({prompt.session for prompt in alone}) == len(alone)


def test_a_conversation_that_would_become_too_long_ends_and_another_begins() -> None:
    prompts = drawn(turn_tokens=2000)
    assert max(prompt.tokens for prompt in prompts) <= 5000
    assert len({prompt.session for prompt in prompts}) > len(prompts) / 4


def test_of_a_tenant_only_so_many_conversations_are_open_at_a_time() -> None:
    seen: dict[int, int] = {}
    prompts = drawn(6000, tenants=1, shape=Shape(longest=10**9, system_tokens=0, goes_on=0.5))
    for number, prompt in enumerate(prompts):
        seen[prompt.session] = number
    ended = [session for session, number in seen.items() if number < 3000]
    assert len(seen) - len(ended) > OPEN_CONVERSATIONS
    assert len(ended) > 1000


def test_a_beginning_longer_than_the_prompt_is_shared_as_far_as_the_prompt_goes() -> None:
    prompts = drawn(10, tenants=1, wanted=100, shape=Shape(longest=100, system_tokens=1000, goes_on=0.0))
    assert {common(prompts[0], prompt) for prompt in prompts[1:]} == {100 // BLOCK}
