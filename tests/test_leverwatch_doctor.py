"""The diagnosis: what is said of small stores, which words stand for what is missing, and that it is the same from everywhere."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from collectors_bodies import START, VLLM, body, span
from leverwatch_fleet import NOW, put, tapped, vllm
from test_leverwatch_serve import Running

from collectors.ledger import Note
from leverwatch import doctor
from leverwatch.cli.main import main
from leverwatch.config import Config
from leverwatch.doctor_text import _ledger, text
from leverwatch.engine_room import EngineRoom
from leverwatch.ledger_rows import ledger_sums

HOUR_NS = 3_600_000_000_000


@pytest.fixture
def room(tmp_path: Path) -> Iterator[EngineRoom]:
    opened = EngineRoom(tmp_path / "data", Config(), clock=lambda: NOW)
    yield opened
    opened.close()


def test_a_store_with_nothing_cannot_tell(room: EngineRoom) -> None:
    told = doctor.diagnose(room)
    assert (told["status"], told["replicas"], told["requests"], told["freshness"]["newest_event_at"]) == (3, [], 0, None)
    assert "cannot tell: no requests in this period" in text(told)


def test_a_replica_that_served_nothing_in_the_period_is_silent_and_not_judged(room: EngineRoom) -> None:
    put(room, body(vllm(1), service__instance__id="r1"))
    hours_later = span(
        2, start_time_unix_nano=START + 3 * HOUR_NS, end_time_unix_nano=START + 3 * HOUR_NS + 10**9, attributes=vllm(2).attributes
    )
    put(room, body(hours_later, service__instance__id="r2"), at_ns=START + 3 * HOUR_NS + 2 * 10**9)
    told = doctor.diagnose(room)
    assert [(one["replica"], one["stands"], one["core"] == []) for one in told["replicas"]] == [
        ("r2", "requests", False),
        ("r1", "silent", True),
    ]
    assert "r1: vllm, SILENT: no request in this period" in text(told)
    assert doctor.diagnose(room, "4h")["requests"] == 2


def test_unknown_scopes_are_named_with_their_spans_and_services(room: EngineRoom) -> None:
    put(room, body(span(1, name="work"), span(2, name="work"), scope="acme.tracer", service__name="acme"))
    told = doctor.diagnose(room)
    assert told["unknown"] == [{"scope": "acme.tracer", "service": "acme", "spans": 2}]
    assert (told["status"], told["replicas"]) == (3, [])


def test_many_unknown_scopes_are_summed_and_none_is_lost(room: EngineRoom) -> None:
    put(room, *(body(span(100 * number + n, name="work"), scope=f"acme{number}") for number in range(1, 51) for n in range(2)))
    found = doctor.diagnose(room)["unknown"]
    assert (len(found), found[-1]["scope"], sum(one["spans"] for one in found)) == (21, "others", 100)


@pytest.mark.parametrize(
    ("arrived_s", "sender", "word"),
    [(-10, "10.0.0.1", "runs ahead"), (5, "10.0.0.1", ""), (4000, "10.0.0.1", "runs behind"), (4000, "load:abc", "")],
)
def test_a_senders_clock_is_held_against_arrival(room: EngineRoom, arrived_s: int, sender: str, word: str) -> None:
    put(room, body(vllm(1)), sender=sender, at_ns=START + 251_000_000 + arrived_s * 10**9)
    said = doctor.diagnose(room)["senders"][0]["said"]
    assert said.endswith(word) if word else said == ""


def test_impossible_values_are_counted_by_reason(room: EngineRoom) -> None:
    put(room, body(vllm(1), service__instance__id="r1"))
    put(room, body(tapped(1, cached_tokens=101), scope="leverwatch.response_tap"))
    found = doctor.diagnose(room)["quarantine"]
    assert [(row["column"], row["values"]) for row in found] == [("cached_tokens", 1)]
    assert "more prompt tokens skipped than the prompt has" in found[0]["reason"]


def test_a_scrape_target_fails_until_a_later_minute_has_samples(room: EngineRoom) -> None:
    minute_ns = 60_000_000_000
    for target, minutes in (("scrape:a/metrics", 3), ("scrape:b/metrics", 1)):
        room.loader.note(Note(target, "scrapes", START + minutes * minute_ns, "not scraped: answered 503"))
    room.drain()
    with room.store.write() as transaction:
        moment = datetime.fromtimestamp(START / 1e9, UTC) + timedelta(minutes=2)
        transaction.execute(
            "insert into ingest_entries select sender, 'scrapes', $moment, 5, 5, 0, 0, 0, 0, 0, map {} from "
            "(values ('scrape:a/metrics'), ('scrape:b/metrics')) t(sender)",
            {"moment": moment},
        )
    found = doctor.diagnose(room)["scrapes"]
    assert [(row["sender"], row["is_failing"], row["reason"]) for row in found] == [
        ("scrape:a/metrics", True, "not scraped: answered 503"),
        ("scrape:b/metrics", False, ""),
    ]


def test_sampled_replicas_say_their_share_and_their_weight(room: EngineRoom) -> None:
    put(room, body(vllm(1), service__instance__id="r1"))
    with room.store.write() as transaction:
        window = {"at": datetime.fromtimestamp(START / 1e9, UTC)}
        transaction.execute("insert into sampling values ('r1', $at, 300, 40, 400, 0.1, 10, 'sampled', 'counter')", window)
    told = doctor.diagnose(room)
    assert told["sampling"] == [
        {"replica": "r1", "state": "sampled", "spans": 40, "counted": 400, "fraction": 0.1, "weight": 10.0, "why": ""}
    ]
    shown = " ".join(text(told).split())
    assert "(10 % of requests send spans: totals are scaled by 10; it sends all requests, unless the caller's traceparent says no" in shown


def test_what_waits_counts_as_pending_in_the_sums_of_the_ledger(room: EngineRoom) -> None:
    put(room, body(vllm(1)))
    room.loader.waiting.add("10.0.0.1", "logs", 3)
    sums = ledger_sums(room)
    assert sums["traces"] == {"received": 1, "stored": 1, "duplicate": 0, "rejected": 0, "dropped": 0, "pending": 0}
    assert (sums["logs"]["received"], sums["logs"]["pending"]) == (3, 3)
    assert doctor.diagnose(room)["freshness"]["pending"] == {"logs": 3}


def test_replicas_that_are_alike_share_a_block_with_the_range_of_their_shares(room: EngineRoom) -> None:
    for replica, share in (("r1", 2), ("r2", 4)):
        spans = (vllm(n + 10 * share, **({"gen_ai.request.temperature": 0.7} if n % share == 0 else {})) for n in range(8))
        put(room, body(*spans, service__instance__id=replica))
    shown = text(doctor.diagnose(room))
    assert shown.count("skipped_token_ratio") == 3  # the head, the row, and the metric that names it
    assert "temperature 25-50 %" in shown


def test_names_of_senders_cannot_steer_a_terminal(room: EngineRoom) -> None:
    put(room, body(vllm(1), service__instance__id="r\x1b[2J1\r\nx"))
    shown = text(doctor.diagnose(room))
    assert "\x1b" not in shown
    assert "\r" not in shown


def test_requests_that_were_loaded_without_an_engine_are_diagnosed_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "requests.csv").write_text("request_id,started_at,replica,prompt_tokens,cached_tokens\nr-9,2023-11-14T22:13:20Z,x,7,0\n")
    data = ["--data", str(tmp_path / "data")]
    assert main(["load", str(tmp_path / "requests.csv"), *data]) == 0
    assert main(["doctor", *data]) == 1
    shown = capsys.readouterr().out
    assert "1 request; cannot be computed: net_itl_s" in shown
    assert "x: (no engine named), 1 request;" in shown


def test_a_time_that_cannot_be_read_is_one_line_and_status_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    EngineRoom(tmp_path, Config()).close()
    assert main(["doctor", "--data", str(tmp_path), "--since", "yesterday"]) == 2
    assert "time 'yesterday'" in capsys.readouterr().err


def test_the_answer_is_the_same_from_a_server_from_afar_and_without_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "read").write_text("read-token-000001")
    (tmp_path / "a.toml").write_text('[access]\nread = [{ token = "read-token-000001" }]\n')
    (tmp_path / "spans.pb").write_bytes(body(vllm(1), vllm(2), scope=VLLM, service__instance__id="r1"))
    data = ["--data", str(tmp_path / "data")]
    running = Running(tmp_path / "data", "--config", str(tmp_path / "a.toml"))
    try:
        assert main(["load", str(tmp_path / "spans.pb"), *data]) == 0
        url = ["--url", running.addresses["url"]]
        until_s = time.monotonic() + 20
        while _diagnosis(capsys, *data)[1]["requests"] != 2 and time.monotonic() < until_s:
            time.sleep(0.1)
        near = _diagnosis(capsys, *data)
        far = _diagnosis(capsys, *url, "--token-file", str(tmp_path / "read"))
        assert main(["doctor", *url]) == 2
        assert httpx.get(f"{running.addresses['url']}/api/doctor").status_code == 401
        ready = httpx.get(f"{running.addresses['url']}/readyz", headers={"authorization": "Bearer read-token-000001"}).json()
        assert ready["ledger"]["traces"]["stored"] == 2
    finally:
        running.end()
    assert near[0] == 1
    assert near == far == _diagnosis(capsys, *data)


def _diagnosis(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """Status and JSON, without what depends on when it was asked."""
    capsys.readouterr()
    status = main(["doctor", "--format", "json", *words])
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    del told["now"], told["freshness"]["newest_event_age_s"]
    for one in told["replicas"]:
        del one["last_seen_age_s"]
    return status, told


def test_every_reason_of_a_ledger_line_is_told_or_counted() -> None:
    counts = {"received": 20, "stored": 0, "duplicate": 0, "rejected": 20, "dropped": 0, "pending": 0}
    row = {"sender": "s", "signal": "traces", **counts, "reasons": [{"reason": f"why {n}", "items": 1} for n in range(12)]}
    (few,) = _ledger(row | {"reasons": row["reasons"][:4]})
    (many,) = _ledger(row)
    assert few.endswith("why 0 (1); why 1 (1); why 2 (1); why 3 (1)")
    assert many.endswith("why 9 (1); and 2 more reasons (--format json has them)")


def refused(number: int, outcome: str = "error") -> Any:
    return tapped(number, outcome=outcome, status_code=400)


def test_what_the_tap_alone_saw_refused_or_given_up_says_nothing_of_its_replica(room: EngineRoom) -> None:
    engine = [vllm(number, **{"gen_ai.request.model": "m"}) for number in range(1, 4)]
    bodies = [tapped(number, cached_tokens=10, first_chunk_s=0.1) for number in range(1, 4)]
    put(room, body(*engine, service__instance__id="r1"))
    tap = body(*bodies, refused(8), refused(9, "aborted"), scope="leverwatch.response_tap", service__instance__id="r1")
    put(room, tap)
    told = doctor.diagnose(room)
    assert [(one["replica"], one["dialect"], one["requests"], one["unserved"]) for one in told["replicas"] if one["core"]] == [
        ("r1", "vllm", 3, 2)
    ]
    assert (told["status"], told["requests"]) == (0, 5)
    assert "r1: vllm, 3 requests, and 2 refused or given up, of which no engine spoke: nothing is asked of them" in text(told)
    assert "(no engine named)" not in text(told)


def test_a_replica_that_refused_everything_is_not_judged(room: EngineRoom) -> None:
    put(room, body(refused(1), refused(2), scope="leverwatch.response_tap", service__instance__id="r1"))
    told = doctor.diagnose(room)
    [one] = [one for one in told["replicas"] if one["stands"] == "unserved"]
    assert (told["status"], one["replica"], one["unserved"], one["core"]) == (3, "r1", 2, [])
    assert "2 requests; cannot tell: no engine served a request in this period" in text(told)


def test_requests_that_the_tap_alone_saw_answered_are_judged(room: EngineRoom) -> None:
    put(room, body(tapped(1, prompt_tokens=9), refused(2), scope="leverwatch.response_tap", service__instance__id="r1"))
    told = doctor.diagnose(room)
    [one] = [one for one in told["replicas"] if one["stands"] == "requests"]
    assert (told["status"], one["requests"], one["unserved"]) == (1, 1, 1)


def test_drafts_are_not_asked_of_vllms_requests_for_several_samples(room: EngineRoom) -> None:
    one, several = vllm(1), vllm(2, **{"gen_ai.request.n": 2})
    put(room, body(one, several, service__instance__id="r1", **{"leverwatch.lever.speculation": "ngram-4"}))
    drafts = tapped(1, cached_tokens=10, draft_tokens=8, accepted_tokens=5, verify_steps=2, accepted_by_position="[2,1]")
    put(room, body(drafts, tapped(2, cached_tokens=10), scope="leverwatch.response_tap", service__instance__id="r1"))
    told = doctor.diagnose(room)
    [replica] = [found for found in told["replicas"] if found["stands"] == "requests"]
    [column] = [found for found in replica["columns"] if found["column"] == "draft_tokens"]
    [metric] = [found for found in replica["core"] if found["metric"] == "draft_acceptance"]
    assert (column["state"], metric["state"], metric["coverage"], metric["lacks"]) == ("complete", "computed", 1.0, [])
    assert "draft_acceptance        100 %        not asked of 1 with several answers: vLLM states" in text(told)


def test_samples_whose_spans_say_one_each_are_told_by_an_answer_of_more_tokens_than_any_has(room: EngineRoom) -> None:
    """As recorded of vLLM 0.32 with `n` = 2: two spans of one id and n = 1, and an answer with the tokens of both."""
    first, second = vllm(2, **{"gen_ai.request.n": 1}), vllm(2, **{"gen_ai.request.n": 1})
    second.span_id = (77).to_bytes(8, "big")
    later = START + 600 * 10**9
    newer = span(3, start_time_unix_nano=later, end_time_unix_nano=later + 10**9, attributes=vllm(3).attributes)
    put(room, body(vllm(1), first, second, service__instance__id="r1", **{"leverwatch.lever.speculation": "ngram-4"}))
    drafts = {"cached_tokens": 10, "draft_tokens": 8, "accepted_tokens": 5, "verify_steps": 2}
    of_tap = [tapped(1, **drafts), tapped(2, cached_tokens=10, output_tokens=20, prompt_tokens=100)]
    put(room, body(*of_tap, scope="leverwatch.response_tap", service__instance__id="r1"))
    put(room, body(newer, service__instance__id="r2"), at_ns=later + 2 * 10**9)
    [one] = [found for found in doctor.diagnose(room)["replicas"] if found["replica"] == "r1" and found["stands"] == "requests"]
    [metric] = [found for found in one["core"] if found["metric"] == "draft_acceptance"]
    assert (one["requests"], metric["coverage"], metric["lacks"]) == (2, 1.0, [])
    assert metric["unasked"].startswith("not asked of 1 with several answers: vLLM states")
