"""What is found of each replica: which core metrics there are, which do not apply, and which are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from collectors_bodies import START, body
from leverwatch_fleet import NOW, half, put, states, tapped, vllm, why

from leverwatch import doctor
from leverwatch.config import Config
from leverwatch.doctor_text import text
from leverwatch.engine_room import EngineRoom
from queries import fresh_parts


@pytest.fixture
def room(tmp_path: Path) -> Iterator[EngineRoom]:
    opened = EngineRoom(tmp_path / "data", Config(), clock=lambda: NOW)
    yield opened
    opened.close()


def test_a_plain_fleet_of_vllm_with_the_tap_lacks_no_core_metric(room: EngineRoom) -> None:
    put(room, body(*(vllm(n) for n in range(1, 9)), service__instance__id="r1"))
    assert doctor.diagnose(room)["status"] == 1
    put(room, body(*(tapped(n, cached_tokens=64) for n in range(1, 9)), scope="leverwatch.response_tap", service__instance__id="r1"))
    told = doctor.diagnose(room)
    assert told["status"] == 0
    assert states(told) == {
        "skipped_token_ratio": "computed",
        "cache_hit_rate": "computed",
        "draft_acceptance": "not_applicable",
        "net_itl_s": "computed",
        "interconnect_efficiency": "not_applicable",
    }


def test_where_the_tap_speaks_and_the_engine_says_nothing_the_engines_flag_is_asked_for(room: EngineRoom) -> None:
    put(room, body(vllm(1), service__instance__id="r1"))
    put(room, body(tapped(1), scope="leverwatch.response_tap", service__instance__id="r1"))
    said = why(doctor.diagnose(room), "cached_tokens")
    assert said.startswith("the tap speaks, and no answer said it: ")
    assert "--enable-prompt-tokens-details" in said


def test_a_speculation_lever_makes_draft_acceptance_asked_for_unless_it_is_off(room: EngineRoom) -> None:
    put(room, body(vllm(1), service__instance__id="r1", leverwatch__lever__speculation="ngram-4"))
    put(room, body(vllm(2), service__instance__id="r2", leverwatch__lever__speculation="off"))
    told = doctor.diagnose(room)
    assert (states(told)["draft_acceptance"], states(told, "r2")["draft_acceptance"]) == ("missing", "not_applicable")


def test_a_topology_of_pools_makes_interconnect_efficiency_asked_for(room: EngineRoom) -> None:
    put(room, body(vllm(1), service__instance__id="r1", leverwatch__topology="pd-1p2d"))
    assert states(doctor.diagnose(room))["interconnect_efficiency"] == "missing"


def test_a_prefill_replica_with_a_pair_in_flight_is_not_judged(room: EngineRoom) -> None:
    pools = {phase: {"service__instance__id": phase, "leverwatch__pool": phase} for phase in ("prefill", "decode")}
    put(room, body(half(1, "prefill"), half(2, "prefill"), **pools["prefill"]))
    alone = doctor.diagnose(room)
    assert states(alone, "prefill")["net_itl_s"] == "missing"
    assert why(alone, "decode_s", "prefill") == "only the prefill legs are known: trace the decode pool too"
    put(room, body(half(1, "decode"), **pools["decode"]))
    told = doctor.diagnose(room)
    assert {one["replica"]: one["stands"] for one in told["replicas"]} == {"prefill": "parts", "decode": "requests"}
    assert states(told, "decode")["interconnect_efficiency"] == "missing"


def test_answers_of_one_token_have_no_net_itl_and_that_is_no_failing(room: EngineRoom) -> None:
    put(room, body(vllm(1, **{"gen_ai.usage.completion_tokens": 1}), service__instance__id="r1"))
    assert states(doctor.diagnose(room))["net_itl_s"] == "not_applicable"


def test_a_partial_column_is_a_share_of_the_requests(room: EngineRoom) -> None:
    put(
        room,
        body(*(vllm(n, **({"gen_ai.request.temperature": 0.7} if n % 4 == 0 else {})) for n in range(1, 9)), service__instance__id="r1"),
    )
    one = doctor.diagnose(room)["replicas"][0]
    found = next(each for each in one["columns"] if each["column"] == "temperature")
    assert (found["state"], found["coverage"]) == ("partial", 0.25)


def test_a_counter_of_drafts_makes_draft_acceptance_asked_for_once_it_counts(room: EngineRoom) -> None:
    put(room, body(vllm(1), service__instance__id="r1"))
    at = datetime.fromtimestamp(START / 1e9, UTC)
    found = []
    for value in (0.0, 279.0):
        with room.store.write() as transaction:
            transaction.execute(
                "insert into samples_hot by name select $at as observed_at, 'r1' as replica, 'vllm:spec_decode_num_draft_tokens' as name, "
                "map {} as labels, $value as value, 'counter' as kind, 'draft_tokens_total' as signal, 'vllm' as engine, 's' as sender, "
                "$at as received_at",
                {"at": at, "value": value},
            )
        found.append(states(doctor.diagnose(room))["draft_acceptance"])
    assert found == ["not_applicable", "missing"]


@pytest.mark.parametrize(
    ("settled", "before_s", "late"), [("true", 20, True), ("false", 20, False), ("true", 90, False), ("true", -5, False)]
)
def test_requests_that_were_settled_before_their_samples_came_are_told_by_replica(
    room: EngineRoom, settled: str, before_s: int, late: bool
) -> None:
    put(room, body(*(vllm(n) for n in range(1, 4)), service__instance__id="r1"))
    with room.store.write() as transaction:
        transaction.execute(f"update requests_hot set is_settled = {settled}")
        transaction.execute(
            "insert into samples_hot by name select max(started_at) - to_seconds($before_s) as observed_at, 'r1' as replica, "
            "'vllm:num_requests_running' as name, map {} as labels, 3.0 as value, 'gauge' as kind, 'running_requests' as signal, "
            "'vllm' as engine, 's' as sender, max(started_at) as received_at from requests_hot",
            {"before_s": before_s},
        )
    told = doctor.diagnose(room)
    assert told["late_samples"] == ([{"replica": "r1", "column": "batch_at_admission", "requests": 3}] if late else [])
    assert why(told, "batch_at_admission").startswith("its samples came after these requests were settled") == late
    assert ("r1: 3 requests without batch_at_admission" in text(told)) == late


def test_a_replica_that_samples_alone_name_is_shown_as_such(room: EngineRoom) -> None:
    put(room, body(vllm(1), service__instance__id="r1"))
    at = datetime.fromtimestamp(START / 1e9, UTC)
    with room.store.write() as transaction:
        for replica in ("r1", "10.0.0.5:8000"):
            transaction.execute(
                "insert into samples_hot by name select $at as observed_at, $replica as replica, 'vllm:num_requests_waiting' as name, "
                "map {} as labels, 0.0 as value, 'gauge' as kind, 'queue_depth' as signal, 'vllm' as engine, 's' as sender, "
                "$at as received_at",
                {"at": at, "replica": replica},
            )
    told = doctor.diagnose(room)
    assert [(one["replica"], one["stands"]) for one in told["replicas"]] == [("r1", "requests"), ("10.0.0.5:8000", "samples")]
    assert "10.0.0.5:8000: vllm, samples alone: no span names this replica" in text(told)
    assert why(told, "queue_depth").startswith("1 of 1 requests are not settled yet, which a server does 2 minutes")


@pytest.mark.parametrize(
    ("filled", "said"),
    [
        ((0,), "2 of 3 requests are not settled yet, which a server does 2 minutes of event time after they began, or once it saw no "),
        ((), "2 of 3 requests are not settled yet, which a server does"),
    ],
)
def test_a_column_that_settling_fills_says_how_many_requests_wait_for_it(room: EngineRoom, filled: tuple[int, ...], said: str) -> None:
    put(room, body(*(vllm(n) for n in range(1, 4)), service__instance__id="r1"))
    with room.store.write() as transaction:
        transaction.execute("update requests_hot set is_settled = (trace_id = (select min(trace_id) from requests_hot))")
        if filled:
            transaction.execute("update requests_hot set concurrency = 1.0 where is_settled")
    told = doctor.diagnose(room)
    assert why(told, "concurrency").startswith(said)
    assert ("; of the others: worked out of requests that overlap" in why(told, "concurrency")) == (not filled)
    assert why(told, "kv_usage").startswith("no request says it: scrape")


def test_a_control_replica_names_its_lever_and_is_not_asked_for_drafts(room: EngineRoom) -> None:
    marks = {"leverwatch__lever__speculation": "ngram-4"}
    put(room, body(vllm(1), service__instance__id="r1", leverwatch__arm__speculation="control", **marks))
    put(room, body(vllm(2), service__instance__id="r2", leverwatch__arm__speculation="treated", **marks))
    told = doctor.diagnose(room)
    assert (states(told)["draft_acceptance"], states(told, "r2")["draft_acceptance"]) == ("not_applicable", "missing")
    assert "all its requests are of the control arm, which drafts nothing" in " ".join(text(told).split())


def test_a_replica_that_was_control_for_a_while_is_judged_by_the_rest(room: EngineRoom) -> None:
    drafts = {"draft_tokens": 20, "accepted_tokens": 10}
    for arm, numbers in (("control", range(1, 4)), ("treated", range(4, 6))):
        marks = {"leverwatch__lever__speculation": "ngram-4", "leverwatch__arm__speculation": arm}
        put(room, body(*(vllm(n) for n in numbers), service__instance__id="r1", **marks))
    put(room, body(*(tapped(n, **drafts) for n in (4, 5)), scope="leverwatch.response_tap", service__instance__id="r1"))
    one = doctor.diagnose(room)["replicas"][0]
    found = {core["metric"]: core for core in one["core"]}["draft_acceptance"]
    assert (found["state"], found["requests"], found["coverage"], found["lacks"]) == ("computed", 2, 1.0, [])
    assert {each["column"]: each["state"] for each in one["columns"]}["draft_tokens"] == "complete"


def test_a_misspelled_arm_or_lever_is_said_of_its_replica_and_its_column_is_not_complete(room: EngineRoom) -> None:
    put(room, body(vllm(1), service__instance__id="r1", leverwatch__lever__speculation="ngram", leverwatch__arm__speculation="treatd"))
    put(room, body(vllm(2), service__instance__id="r2", leverwatch__lever__speculaton="ngram", leverwatch__arm__speculation="treated"))
    told = doctor.diagnose(room)
    assert why(told, "arms") == (
        "leverwatch.arm.speculation = 'treatd' is no arm; did you mean 'treated'? taken: treated, control, disabled_in_place"
    )
    assert why(told, "levers", "r2") == "leverwatch.lever.speculaton: no lever of this name is known; did you mean 'speculation'?"
    by_column = {each["column"]: each["state"] for each in told["replicas"][0]["columns"]}
    assert (by_column["levers"], by_column["arms"]) == ("complete", "missing")
    assert "did you mean 'treated'?" in text(told)


def test_a_misspelled_lever_is_named_where_no_lever_is_seen(room: EngineRoom) -> None:
    put(room, body(vllm(1), service__instance__id="r1", leverwatch__lever__speculaton="ngram"))
    core = {one["metric"]: one for one in doctor.diagnose(room)["replicas"][0]["core"]}["draft_acceptance"]
    assert core["why"].endswith("but leverwatch.lever.speculaton: no lever of this name is known; did you mean 'speculation'?")


def test_without_a_period_an_hour_or_the_newest_requests_are_looked_at(room: EngineRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh_parts, "MIN_ROWS", 2)
    for first in (1_000, 2_000, 3_000):
        put(room, body(*(vllm(first + number) for number in range(4)), service__instance__id=f"r{first}"))
    assert [one["replica"] for one in doctor.diagnose(room)["replicas"]] == ["r1000", "r2000", "r3000"]
    for most, seen in ((8, 8), (5, 8), (4, 4), (1, 4)):
        monkeypatch.setattr(doctor, "MOST_REQUESTS", most)
        told = doctor.diagnose(room)
        assert sum(one["requests"] for one in told["replicas"]) == seen
        assert {one["stands"] for one in told["replicas"] if not one["requests"]} == {"silent"}
    assert doctor.diagnose(room, "1h")["requests"] == 12
