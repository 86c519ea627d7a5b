"""A fleet whose telemetry is in disorder: what is told of it cannot all be, and what is made of it is."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import polars as pl
import pytest
from demo_played import loaded

from demo import scenarios
from demo.fleet import Fleet
from leverwatch.local import Local


@pytest.fixture(scope="module")
def untidy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Local, Fleet]]:
    scenario = msgspec.structs.replace(scenarios.load("untidy-fleet"), hours=1.5)
    with loaded(scenario, tmp_path_factory.mktemp("store")) as played:
        yield played


def asked(untidy: tuple[Local, Fleet], sql: str) -> pl.DataFrame:
    return untidy[0].sql(sql)


def test_a_leg_that_is_told_twice_is_counted_once(untidy: tuple[Local, Fleet]) -> None:
    assert asked(untidy, "select count(*) as n from requests").item() == untidy[1].requests
    twice = "avg((list_contains(flags, 'duplicate_leg'))::int)"
    assert asked(untidy, f"select {twice} as share from requests where engine = 'vllm'").item() == pytest.approx(0.02, abs=0.008)


def test_one_who_went_away_and_one_who_was_refused_are_known_by_the_tap_alone(untidy: tuple[Local, Fleet]) -> None:
    found = asked(
        untidy, "select outcome, count(*) as n, bool_and(list_contains(flags, 'body_only')) as alone from requests group by outcome"
    )
    shares = {outcome: n / untidy[1].requests for outcome, n, _ in found.iter_rows()}
    assert shares["aborted"] == pytest.approx(0.02, abs=0.008)
    assert shares["error"] == pytest.approx(0.02, abs=0.008)
    assert {outcome: alone for outcome, _, alone in found.iter_rows()} == {"ok": False, "aborted": True, "error": True}


def test_a_request_that_is_tried_again_is_a_failed_one_and_another_in_one_trace(untidy: tuple[Local, Fleet]) -> None:
    found = asked(
        untidy,
        "select outcomes, count(*) as n from (select list(outcome order by outcome) as outcomes from requests group by trace_id)"
        " where len(outcomes) > 1 group by outcomes",
    )
    assert found["outcomes"].to_list() == [["error", "ok"]]
    failed = asked(untidy, "select count(*) as n from requests where outcome = 'error'").item()
    assert found["n"].item() == pytest.approx(0.7 * failed, rel=0.25)


def test_spans_that_reach_out_of_their_caller_betray_a_clock_that_is_ahead_or_behind(untidy: tuple[Local, Fleet]) -> None:
    skewed = "avg((list_contains(flags, 'clock_skew'))::int)"
    found = asked(untidy, f"select replica, {skewed} as share from requests where outcome = 'ok' group by replica")
    shares = dict(found.iter_rows())
    assert (shares.pop("chat-0"), shares.pop("chat-1")) == (1, 1)
    assert all(share < 0.2 for share in shares.values())  # there first tokens before their requests, and nothing else


def test_each_bug_of_an_engine_is_known_by_its_name(untidy: tuple[Local, Fleet]) -> None:
    found = asked(untidy, 'select distinct trap, "column" from quarantine')
    columns: dict[str, set[str]] = {}
    for trap, column in found.iter_rows():
        columns.setdefault(trap, set()).add(column)
    assert columns == {
        "accepted_above_drafted": {"accepted_tokens", "draft_tokens", "verify_steps"},
        "cached_above_prompt": {"cached_tokens"},
        "cached_by_decode_leg": {"cached_tokens"},
        "decode_s_above_e2e": {"decode_s", "tpot_s"},
        "queue_s_minus_one": {"queue_s"},
        "ttft_s_minus_one": {"ttft_s"},
        "ttft_s_negative": {"ttft_s"},
    }


def test_what_cannot_be_is_in_no_column_that_is_measured(untidy: tuple[Local, Fleet]) -> None:
    impossible = ("ttft_s < 0", "queue_s < 0", "cached_tokens > prompt_tokens", "accepted_tokens > draft_tokens", "decode_s > e2e_s")
    counts = asked(untidy, "select " + ", ".join(f"count(*) filter ({one})" for one in impossible) + " from requests").row(0)
    assert dict(zip(impossible, counts, strict=True)) == dict.fromkeys(impossible, 0)
