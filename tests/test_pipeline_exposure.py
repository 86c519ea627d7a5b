"""Counts that no request carries, given to requests by their exposure."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_load_rows import joined, request, requests, series

QUERIED, CACHED, PROMPT, OUT = "cache_queried_tokens_total", "cached_tokens_total", "prompt_tokens_total", "output_tokens_total"
DRAFT, ACCEPTED, STEPS = "draft_tokens_total", "accepted_tokens_total", "verify_steps_total"


def drafts(draft: float, accepted: float, output: float, until: float = 20) -> list[pl.DataFrame]:
    ends = {DRAFT: draft, ACCEPTED: accepted, STEPS: output - accepted, OUT: output}
    return [series(signal, [(0, 0), (until, value)]) for signal, value in ends.items()]


def cached(*points: tuple[float, float, float]) -> list[pl.DataFrame]:
    """(second, cached tokens, queried tokens) as counters stand then."""
    return [series(CACHED, [(s, hit) for s, hit, _ in points]), series(QUERIED, [(s, asked) for s, _, asked in points])]


def column(rows: list[dict[str, Any]], name: str) -> list[Any]:
    return [row[name] for row in rows]


def test_cached_tokens_go_by_prompts_at_the_rate_of_the_interval_that_admitted_them() -> None:
    made = requests(
        request(1, 5, prompt_tokens=100), request(2, 18, prompt_tokens=300), request(5, 18, prompt_tokens=40, queue_s=6.0)
    )  # fmt: skip
    found = joined(made, *cached((0, 0, 0), (10, 200, 400), (20, 210, 440)))
    assert column(found, "cached_tokens") == [50, 150, 10]
    assert column(found, "cache_class") == ["hit", "hit", "partial"]
    assert found[0]["provenance"]["cached_tokens"] == "counter"


def test_without_a_counter_of_lookups_prompt_tokens_stand_in_for_them() -> None:
    samples = [series(CACHED, [(0, 0), (10, 25)]), series(PROMPT, [(0, 0), (10, 100)])]
    assert column(joined(requests(request(1, 5, prompt_tokens=100)), *samples), "cached_tokens") == [25]


def test_at_least_one_token_of_a_prompt_is_computed() -> None:
    found = joined(requests(request(1, 5, prompt_tokens=100)), *cached((0, 0, 0), (10, 400, 400)))
    assert column(found, "cached_tokens") == [99]


def test_drafts_go_by_output_tokens_after_the_first_and_keep_their_sums() -> None:
    made = requests(*(request(n, n + 3, output_tokens=tokens, ttft_s=1.0) for n, tokens in enumerate((11, 31, 2, 1, 56))))
    found = joined(made, *drafts(279, 18, 101))
    assert sum(column(found, "draft_tokens")) == pytest.approx(279, abs=1)
    assert sum(column(found, "accepted_tokens")) == pytest.approx(18, abs=1)
    assert found[3]["draft_tokens"] == 0  # its only token came of the prompt
    assert found[4]["provenance"]["accepted_tokens"] == found[4]["provenance"]["verify_steps"] == "counter"


def test_models_that_share_a_replica_get_none_by_exposure_since_a_rate_would_give_both_the_same() -> None:
    """Acceptance was reported as 0.47 and 0.53 of models that had 0.10 and 0.90."""
    samples = [*drafts(90, 45, 60), series(DRAFT, [(0, 0), (20, 60)], replica="alone"), series(OUT, [(0, 0), (20, 60)], replica="alone")]
    one, other = (request(n, n + 3, output_tokens=31, ttft_s=1.0, model=model) for n, model in ((1, "m"), (5, "n")))
    alone = request(2, 6, "alone", output_tokens=31, ttft_s=1.0, model="m")
    found = joined(requests(one, other, alone), *samples)
    assert column(found, "draft_tokens")[:2] == column(found, "accepted_tokens")[:2] == [None, None]
    assert found[2]["draft_tokens"]
    assert column(joined(requests(one), *samples, around=requests(other)), "draft_tokens") == [None]


def test_a_replica_whose_requests_carry_drafts_gets_none_by_exposure() -> None:
    made = requests(request(1, 5, output_tokens=11, draft_tokens=9, accepted_tokens=4), request(2, 6, output_tokens=11))
    found = joined(made, *drafts(100, 50, 100))
    assert column(found, "draft_tokens") == [9, None]
    assert column(found, "verify_steps") == [None, None]


@pytest.mark.parametrize(("lever", "given"), [("speculation", [None, None]), ("pool_ratio", [11, 11])])
def test_arms_beside_each_other_on_a_replica_are_not_given_the_same_drafts(lever: str, given: list[int | None]) -> None:
    arms: list[dict[str, Any]] = [{"arms": [{"key": lever, "value": arm}]} for arm in ("treated", "control")]
    found = joined(requests(*(request(1, 5, output_tokens=11, **arm) for arm in arms)), *drafts(100, 20, 100))
    assert column(found, "draft_tokens") == given
    assert (
        column(
            joined(requests(request(1, 5, output_tokens=11, **arms[0])), *drafts(100, 20, 100), around=requests(request(2, 3, **arms[1]))),
            "draft_tokens",
        )
        == given[:1]
    )
    apart = joined(requests(request(1, 5, output_tokens=11, **arms[0]), request(1, 5, "q", **arms[1])), *drafts(50, 20, 100))
    assert apart[0]["draft_tokens"] is not None


def test_without_a_second_scrape_or_after_too_long_a_time_nothing_is_given() -> None:
    made = requests(request(1, 5, output_tokens=11, prompt_tokens=10), request(15, 25, output_tokens=11, prompt_tokens=10))
    assert column(joined(made, *drafts(100, 50, 100)), "draft_tokens") == [11, None]
    assert column(joined(made, *drafts(100, 50, 100, until=301)), "draft_tokens") == [None, None]
    assert column(joined(made, *cached((0, 5, 9))), "cached_tokens") == [None, None]


def test_nothing_counted_while_tokens_came_is_none_and_no_tokens_are_unknown() -> None:
    made = requests(request(1, 5, output_tokens=11))
    assert column(joined(made, *drafts(0, 0, 100)), "draft_tokens") == [0]
    assert column(joined(made, series(DRAFT, [(0, 0), (10, 9)]), series(OUT, [(0, 5), (10, 5)])), "draft_tokens") == [None]
    assert column(joined(made, series(DRAFT, [(0, 0), (10, 9)])), "draft_tokens") == [None]


def test_preemptions_and_evicted_tokens_are_given_where_they_are_counted() -> None:
    made = requests(*(request(1, 9, output_tokens=11, prompt_tokens=100) for _ in range(10)))
    samples = [series("preemptions_total", [(0, 0), (10, 10)]), series("evicted_tokens_total", [(0, 0), (10, 500)])]
    found = joined(made, *samples, series(OUT, [(0, 0), (10, 110)]), series(PROMPT, [(0, 0), (10, 1000)]))
    assert column(found, "preemptions") == [1] * 10
    assert column(found, "evicted_tokens") == [50] * 10


def test_a_replica_that_counts_evictions_and_no_hits_has_them_beside_one_that_does() -> None:
    other = [series(name, [(1, 0), (11, 40)], "q") for name in (CACHED, PROMPT)]
    made = requests(request(2, 5, prompt_tokens=100), request(2, 5, "q", prompt_tokens=10))
    found = joined(made, series("evicted_tokens_total", [(0, 0), (10, 50)]), series(PROMPT, [(0, 0), (10, 100)]), *other)
    assert column(found, "evicted_tokens") == [50, None]
    assert column(found, "cached_tokens") == [None, 9]


def test_a_counter_beyond_all_bounds_does_not_wrap() -> None:
    made = requests(request(1, 5, output_tokens=11))
    assert column(joined(made, series(DRAFT, [(0, 0), (10, 1e300)]), series(OUT, [(0, 0), (10, 9)])), "draft_tokens") == [10**12]


def test_what_is_rare_is_not_lost_to_rounding() -> None:
    samples = [series("preemptions_total", [(0, 0), (100, 30)]), series(OUT, [(0, 0), (100, 11_000)])]
    alone = [joined(requests(request(n / 11, n / 11 + 0.5, output_tokens=11)), *samples)[0]["preemptions"] for n in range(1, 1000)]
    assert 15 <= sum(alone) <= 45


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.floats(0, 15), st.floats(0.1, 4), st.integers(0, 90)), min_size=1, max_size=30),
    st.integers(0, 3000), st.floats(0, 1), st.integers(1, 2000),
)  # fmt: skip
def test_no_more_is_accepted_than_drafted(rows: list[tuple[float, float, int]], draft: int, share: float, output: int) -> None:
    made = requests(*(request(start, start + length, output_tokens=tokens) for start, length, tokens in rows))
    found = joined(made, *drafts(draft, round(draft * share), output))
    for row in found:
        assert (row["draft_tokens"] is None) == (row["accepted_tokens"] is None)
        assert row["draft_tokens"] is None or 0 <= row["accepted_tokens"] <= row["draft_tokens"]
