"""The page of data health: the ledger adds up or says so, coverage by dialect, and its numbers are those of the API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import elsewhere_rooms
import pytest
from dashboards_rows import HOSTILE, NOW, StoreReader
from house_made import FULL, QUIET_STATE, QUIET_STORAGE, MadeHouse, column, core, diagnosis, entry, replica

from dashboards.health_coverage import dialects
from dashboards.health_problems import Problem, difference, problems
from dashboards.page import Asked
from dashboards.pages import health
from queries.store import Store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = Store(tmp_path_factory.mktemp("data"))
    yield opened
    opened.close()


def told(wrong: dict[str, Any], state: dict[str, Any] | None = None) -> list[Problem]:
    """The problems of a diagnosis."""
    return problems(wrong, state or QUIET_STATE, QUIET_STORAGE, dialects(wrong), NOW, NOW)


def test_where_everything_adds_up_nothing_needs_attention() -> None:
    assert told(diagnosis(ledger=[entry("here", received=7, stored=4, duplicate=1, pending=2)])) == []


def test_items_that_nothing_became_of_are_the_worst() -> None:
    row = entry("here", received=10, stored=7, rejected=1, reasons=[{"reason": "no trace id", "items": 1}])
    assert difference(row) == 2
    found = told(diagnosis(ledger=[row], unknown=[{"spans": 3}]))
    assert [one.css for one in found] == ["bad", "warn", "warn"]
    assert found[0].text == "traces of here: 2 items received and not accounted for"
    assert "1 of 10 rejected or dropped: no trace id" in found[1].text


def test_a_failing_job_is_named_with_its_error() -> None:
    assert Problem("bad", "judge fails: no memory", "server") in told(diagnosis(), {"errors": {"judge": "no memory"}, "backlog_bytes": 0})


def test_doubts_of_several_replicas_are_one_problem() -> None:
    doubt = {"trap": "speed", "column": "kv_transfer_s", "severity": "suspect", "seen": "900 GB/s"}
    found = told(diagnosis(suspicions=[doubt | {"replica": name} for name in "dcba"]))
    assert [one.text for one in found] == ["kv_transfer_s of a, b, c and 1 more is suspect: 900 GB/s"]


def test_targets_that_fail_alike_are_one_problem_and_so_are_replicas_that_fell_silent() -> None:
    scrapes = [{"sender": f"s{n}", "is_failing": True, "reason": "answered 503" if n < 5 else "refused"} for n in range(6)]
    silent = [replica(name, 0) | {"stands": "silent"} for name in "ab"]
    found = [one.text for one in told(diagnosis(scrapes=scrapes, replicas=silent))]
    assert found == ["s0, s1, s2 and 2 more: answered 503", "s5: refused", "a, b are silent: no request in the last hour"]


def test_a_shorter_period_than_an_hour_is_named() -> None:
    short = {"since": "2026-11-30T12:00:00+00:00", "until": "2026-11-30T12:00:50+00:00"}
    (one,) = told(diagnosis(replicas=[replica("a", 0) | {"stands": "silent"}]) | short)
    assert one.text == "a is silent: no request in the last 50 s"


def test_requests_that_were_settled_before_their_samples_are_one_problem() -> None:
    late = [{"replica": name, "column": column, "requests": 600} for name in "ab" for column in ("batch_at_admission", "kv_usage")]
    (one,) = told(diagnosis(late_samples=late))
    assert one.text.startswith("1,200 requests of a, b were settled before their samples came, so their batch is unknown")


def test_coverage_of_a_dialect_weighs_replicas_by_their_requests() -> None:
    columns = [[column("queue_s", "partial", share, "say it")] for share in (0.2, 0.6)]
    found = dialects(diagnosis(replicas=[replica("a", 30, columns=columns[0]), replica("b", 10, columns=columns[1])]))
    assert [(one.name, one.replicas, one.requests) for one in found] == [("vllm", 2, 40)]
    assert [(gap.names, gap.coverage, gap.why) for gap in found[0].gaps] == [(("queue_s",), pytest.approx(0.3), "say it")]


def test_columns_that_lack_for_one_reason_stand_together_and_complete_ones_apart() -> None:
    columns = [column("draft_tokens", "missing", 0.0, "turn it on"), column("verify_steps", "missing", 0.0, "turn it on"), column("model")]
    found = dialects(diagnosis(replicas=[replica("a", 30, columns=columns)]))[0]
    assert [gap.names for gap in found.gaps] == [("draft_tokens", "verify_steps")]
    assert found.complete == ["model"]


def test_a_core_metric_that_one_replica_cannot_compute_is_said() -> None:
    both = [replica("a", 1, core=[core("ttft_s")]), replica("b", 1, core=[core("ttft_s", "missing", 0.0, "no first token")])]
    assert [one.text for one in told(diagnosis(replicas=both))] == ["ttft_s cannot be computed of requests of vllm: no first token"]


def test_the_page_says_what_is_wrong_and_shows_a_strangers_text_as_text(store: Store) -> None:
    page = health.draw(Asked(StoreReader(store), {}, NOW, path="/health", house=MadeHouse(FULL)))
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
    assert "1 not accounted for" in page
    assert HOSTILE not in page


def test_what_is_as_it_should_be_is_folded_behind_what_is_not(store: Store) -> None:
    lost = entry("loses", received=10, stored=9, rejected=1, reasons=[{"reason": "no trace id", "items": 1}])
    wrong = diagnosis(ledger=[entry("whole", received=7, stored=7), lost])
    page = health.draw(Asked(StoreReader(store), {}, NOW, path="/health", house=MadeHouse(wrong)))
    ledger = page.split('<section id="ledger">')[1].split("</section>")[0]
    shown, _, folded = ledger.partition('<details id="ledger-fine" class="fold">')
    assert (">loses<" in shown, ">whole<" in shown, ">whole</th>" in folded) == (True, False, True)
    assert "<summary>Adds up, and nothing was lost: 1</summary>" in folded


def test_history_on_its_way_is_no_data_that_stopped_coming() -> None:
    came = diagnosis(senders=[{"sender": "here", "said": "", "newest_arrival_at": NOW.isoformat(), "newest_end_at": NOW.isoformat()}])
    old = NOW - timedelta(hours=5)
    assert problems(came, QUIET_STATE, QUIET_STORAGE, [], old, NOW) == []
    assert [one.css for one in problems(diagnosis(), QUIET_STATE, QUIET_STORAGE, [], old, NOW)] == ["bad"]


def test_without_a_server_the_page_says_that_it_needs_one(store: Store) -> None:
    with pytest.raises(ValueError, match="start leverwatch serve"):
        health.draw(Asked(StoreReader(store), {}, NOW))


def test_the_numbers_are_those_of_the_api(tmp_path: Path) -> None:
    with elsewhere_rooms.room(tmp_path) as room:
        application = elsewhere_rooms.application(room)
        answers = {path: elsewhere_rooms.ask(application, "GET", path) for path in ("/health", "/api/doctor", "/api/storage")}
    page, doctor, storage = answers["/health"].text, answers["/api/doctor"].json(), answers["/api/storage"].json()
    shown = {float(value) for value in re.findall(r'<data[^>]*value="([-\d.e]+)"', page)}
    assert {float(row["rows"]) for row in storage["holdings"] if row["rows"] is not None} <= shown
    shares = {one["coverage"] for replica in doctor["replicas"] if replica["stands"] == "requests" for one in replica["core"]}
    assert all(any(abs(share - value) < 1e-9 for value in shown) for share in shares)
    assert f"{doctor['requests']:,} requests of" in page
