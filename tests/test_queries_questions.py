"""The investigations: headers, and what each answers over a fleet whose answers are known."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import duckdb
import investigation_rows
import pytest
from investigation_rows import NOW

from queries import files, question_values, statements
from queries.questions import QuestionHeaderError, UnknownInvestigationError, investigation, investigations, read
from queries.sandbox import Sandbox
from queries.store import Store

HEADER = "-- title: T\n-- answers: one\n--   and two.\n-- group: G\n-- param since moment 24h: from\n-- column a count: all\n"
NO_UNIT = ("text", "list", "boolean", "moment")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = Store(tmp_path_factory.mktemp("data"))
    investigation_rows.fill(opened)
    yield opened
    opened.close()


def _rows(store: Store, name: str, **texts: str) -> list[dict[str, Any]]:
    question = investigation(name)
    return store.rows(question.sql, question_values.values(question.parameters, texts, NOW))


@pytest.mark.parametrize("name", [question.name for question in investigations()])
def test_an_investigation_gives_rows_with_the_columns_that_its_header_says(store: Store, name: str) -> None:
    question = investigation(name)
    frame = store.frame(question.sql, question_values.values(question.parameters, {}, NOW))
    assert frame.columns == [column.name for column in question.columns]
    assert frame.height >= 1
    for column in question.columns:
        kind = frame.schema[column.name]
        assert kind.is_numeric() == (column.unit not in NO_UNIT) or frame[column.name].null_count() == frame.height, column


@pytest.mark.parametrize("name", [question.name for question in investigations()])
def test_an_investigation_is_bounded_in_time_and_rows_and_may_be_asked_by_a_stranger(name: str) -> None:
    question = investigation(name)
    assert {"since", "until"} <= set(question_values.names(question.sql)) == {one.name for one in question.parameters}
    statements.check(duckdb.connect(), question.sql)


def test_every_file_with_the_prefix_has_a_header_and_no_other_has_one() -> None:
    headed = {name for name in files.question_names() if files.question(name).startswith("-- title: ")}
    assert headed == {name for name in files.question_names() if name.startswith("ask_")}
    assert len(headed) >= 20


def test_net_time_per_token_counts_a_later_first_token_in(store: Store) -> None:
    for row in _rows(store, "speculation-by-batch", model="chat"):
        assert row["treated_tpot_s"] == pytest.approx(0.02)
        assert row["control_tpot_s"] == pytest.approx(0.025)
        assert row["treated_net_itl_s"] == pytest.approx(0.025)  # half a second later, over 100 tokens
        assert row["net_itl_gain"] == pytest.approx(0.0)


def test_acceptance_by_token_and_by_request_are_two_numbers(store: Store) -> None:
    (row,) = _rows(store, "acceptance-both-ways")
    assert row["accepted_by_token"] == pytest.approx((80 + 3 * 60) / (100 + 3 * 300))
    assert row["accepted_by_request"] == pytest.approx((0.8 + 3 * 0.2) / 4)
    assert row["acceptance_length"] == pytest.approx(1 + (80 + 3 * 60) / (4 * 50))


def test_a_miss_has_its_likely_reason(store: Store) -> None:
    found = {row["reason"]: row for row in _rows(store, "why-cache-missed", model="chat")}
    assert set(found) == {"evicted"}
    assert sum(row["of_misses"] for row in found.values()) == pytest.approx(1)


def test_hits_without_skips_are_seen(store: Store) -> None:
    globex = next(row for row in _rows(store, "skips-against-hits") if row["tenant"] == "globex")
    assert globex["hit_rate"] == 1
    assert globex["skipped_ratio"] == pytest.approx(0.016)


def test_a_transfer_above_its_link_is_counted_and_no_win(store: Store) -> None:
    (row,) = _rows(store, "transfer-over-link")
    assert row["above_link"] == 1
    assert row["of_link"] == pytest.approx(100e9 / (49.51 * 4e9), rel=0.01)


def test_what_the_router_believed_is_held_against_what_the_engine_skipped(store: Store) -> None:
    (row,) = _rows(store, "router-against-engine", since="24h")
    assert row["believed_ratio"] == pytest.approx(0.512)
    assert row["believed_too_much"] == pytest.approx(0.75)


def test_rows_that_the_table_lacks_are_a_difference(store: Store) -> None:
    assert [row["difference"] for row in _rows(store, "acknowledged-against-stored")] == [2]


def test_the_rank_that_others_wait_for_is_named(store: Store) -> None:
    (row,) = _rows(store, "rank-imbalance", since="24h")
    assert row["busiest_rank"] == "3"
    assert row["longest_of_mean"] == pytest.approx(0.003 / 0.0025)


def test_what_went_on_against_advice_is_counted_once_over_replicas(store: Store) -> None:
    stood = sorted((row["stood_hours"], row["treated_requests"]) for row in _rows(store, "lever-debt"))
    assert stood == [(2.0, 120), (6.0, 360)]


def test_quality_stands_beside_the_noise_of_the_original(store: Store) -> None:
    eagle = next(row for row in _rows(store, "quality-against-noise") if row["setting"] == "eagle")
    assert eagle["drop"] == pytest.approx(10.5)
    assert 1 < eagle["noise"] < 2


def test_cost_takes_the_configured_price(store: Store) -> None:
    rows = _rows(store, "cost-per-token")
    assert {row["arm"] for row in rows} == {"treated", "control"}
    assert rows[0]["usd_per_million_tokens"] == pytest.approx(1e6 * 10 * 3.6 / 3600 / 101)


def test_an_investigation_answers_in_the_sandbox_as_it_does_here(store: Store) -> None:
    question, sandbox = investigation("errors-by-replica"), Sandbox(store)
    values = question_values.values(question.parameters, {"model": "chat"}, NOW)
    answer = sandbox.run(question.sql, values)
    assert answer.frame().drop("newest_error_at").to_dicts() == store.frame(question.sql, values).drop("newest_error_at").to_dicts()
    sandbox.close()


def test_a_header_goes_on_in_indented_lines_and_is_no_part_of_the_statement() -> None:
    question = read("ask_some_thing", f"{HEADER}-- column b s: more\nselect 1 as a, 2 as b\n")
    assert (question.name, question.answers, question.sql) == ("some-thing", "one and two.", "select 1 as a, 2 as b")
    assert [column.unit for column in question.columns] == ["count", "s"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (HEADER.replace("-- group: G\n", ""), "the header lacks group"),
        (HEADER + "-- colunm b s: x\n", "line 7 is no header line: '-- colunm b s: x'"),
        (HEADER + "-- column b parsec: x\n", "column b: unit 'parsec' is unknown; known: .*tokens"),
        (HEADER + "-- param n stone 1: x\n", "param 'n stone 1': a name, one of moment, text"),
        (HEADER + "-- param n text: x\n", "and a default"),
    ],
)
def test_a_header_that_cannot_be_read_is_said_with_its_file(text: str, told: str) -> None:
    with pytest.raises(QuestionHeaderError, match=rf"queries/sql/ask_x.sql: .*{told}"):
        read("ask_x", text)


def test_an_unknown_question_is_refused_with_one_that_may_be_meant() -> None:
    with pytest.raises(UnknownInvestigationError, match=r"question 'hot-replica' is unknown; did you mean 'hot-replicas'"):
        investigation("hot-replica")


def test_uptime_begins_anew_with_a_new_version_and_after_half_an_hour_of_silence(store: Store) -> None:
    found = _rows(store, "acceptance-by-uptime", model="chat")
    assert [row["uptime_hours"] for row in found] == [0, 1, 2, 4, 8]
    assert sum(row["requests"] for row in found) == 200
    gone = {"since": NOW - timedelta(hours=6), "until": NOW - timedelta(hours=5)}
    question = investigation("acceptance-by-uptime")
    with store.snapshot() as seen:
        seen.execute("delete from requests_hot where started_at >= $since and started_at < $until", gone)
        after = seen.frame(question.sql, question_values.values(question.parameters, {"model": "chat"}, NOW))
    assert after["uptime_hours"].to_list() == [0, 1, 2, 4]
