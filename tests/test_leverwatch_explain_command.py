"""`leverwatch explain` and `leverwatch effects`: sets by name and by condition, here and by a server; errors in one line with a hint."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest
from fastapi import FastAPI

from leverwatch import explain_api
from leverwatch.cli.main import main
from leverwatch.config import Config, SqlConfig
from leverwatch.engine_room import EngineRoom
from leverwatch.explaining import explain
from leverwatch.remote import Remote
from queries import explain as sets
from queries.explain import ExplainError
from queries.report import ReportError
from queries.results import SqlResult
from queries.sandbox import SqlError

MANY = ("ttft_s", "tpot_s", "decode_s", "prefill_s", "queue_s", "kv_usage", "temperature", "gpu_s", "stall_s")
FOUR_HOURS = """
insert into requests_hot by name
select
    'r' || i as request_id, md5(i::varchar) as trace_id, 'vllm' as engine, ['chat', 'code', 'it''s'][(i % 3 + 1)::int] as model,
    'replica-' || (i % 8) as replica, timestamptz '2026-11-29 08:00:00+00' + to_seconds(i * 14400 // 4000) as started_at,
    started_at + interval 3 second as ended_at, case when i % 50 = 0 then 'error' else 'ok' end as outcome,
    1000 + i * 7919 % 3001 as prompt_tokens, 10 + i * 104729 % 401 as output_tokens,
    case when i % 50 <> 0 then 0.2 + (i * 7907 % 997) / 1000 + case when i % 8 = 5 then 3.0 else 0 end end as e2e_s,
    case when i % 8 = 5 then ['preempted'] else [] end as flags,
    map {'speculation': case when i % 2 = 0 then 'eagle' else 'off' end} as levers,
    map {}::map(varchar, varchar) as arms
from range(4000) numbers(i)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    filled(tmp_path).close()
    return tmp_path


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineRoom]:
    """Of all tests that only ask."""
    opened = filled(tmp_path_factory.mktemp("data"))
    yield opened
    opened.close()


def filled(folder: Path) -> EngineRoom:
    opened = EngineRoom(folder, Config(), clock=lambda: datetime(2026, 11, 29, 12, tzinfo=UTC))
    with opened.store.write() as transaction:
        transaction.execute(FOUR_HOURS)
    return opened


def row(frame: pl.DataFrame, key: str) -> dict[str, Any]:
    return frame.filter(pl.col("key") == key).row(0, named=True)


def asked_of(room: EngineRoom, **params: str) -> httpx.Response:
    """What the route of a server over this room answers."""
    application = FastAPI()
    application.include_router(explain_api.router(room))

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://leverwatch") as client:
            return await client.get("/api/explain", params=params)

    return asyncio.run(ask())


def test_slow_requests_against_the_rest_are_those_of_the_replica_that_preempts(room: EngineRoom) -> None:
    frame = explain(room, "slow")
    assert frame["key"][:2].to_list() == ["flag.preempted", "replica"]
    found = row(frame, "replica")
    assert (found["condition"], found["share_a"], found["note"]) == ("replica = 'replica-5'", 1.0, None)
    assert (found["requests_a"], found["requests_a"] + found["requests_b"], found["sampled"]) == (196, 3920, False)
    assert row(frame, "e2e_s")["note"] == "defines the sets"
    assert row(frame, "output_tokens")["note"] == "no more than chance"


def test_the_condition_that_is_named_holds_for_the_share_that_is_said(room: EngineRoom) -> None:
    found = row(explain(room, "replica = 'replica-5'", "replica = 'replica-6'"), "e2e_s")
    of_set = f"select avg(({found['condition']})::int) as share from requests where replica = '{{}}' and e2e_s is not null"
    for name, share in (("replica-5", found["share_a"]), ("replica-6", found["share_b"])):
        assert room.sandbox.run(of_set.format(name)).rows() == [[pytest.approx(share)]]


def test_every_number_has_an_interval_with_half_of_a_sandbox_s_memory(folder: Path) -> None:
    """The sums by block of all keys at once: with a `filter` for each they took more than the 1 GiB of a sandbox."""
    room = EngineRoom(folder, Config(sql=SqlConfig(limit_bytes=640 << 20)))
    with room.store.write() as transaction:
        columns = ", ".join(f"(hash(i, '{name}') % 997) / 997 as {name}" for name in MANY)
        transaction.execute(FOUR_HOURS.replace("prompt_tokens,", f"prompt_tokens, {columns},", 1).replace("'r' || i", "'m' || i"))
    frame = explain(room, "treated:speculation", "disabled_in_place:speculation", by=(*MANY, "prompt_tokens", "output_tokens", "e2e_s"))
    room.close()
    assert len(frame) == len(MANY) + 3
    assert frame["mean_gap_low"].null_count() == 0


def test_where_intervals_do_not_fit_the_ranking_stands_and_says_so(room: EngineRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = explain(room, "slow", by=("replica", "e2e_s", "output_tokens"))

    answer = room.sandbox.run

    def run(sql: str, *more: Any, **named: Any) -> SqlResult:
        if "as first_a" in sql:
            raise SqlError("Out of Memory Error", "memory_limit")
        return answer(sql, *more, **named)

    monkeypatch.setattr(room.sandbox, "run", run)
    frame = explain(room, "slow", by=("replica", "e2e_s", "output_tokens"))
    assert frame.columns == whole.columns
    assert frame["key"].to_list() == whole["key"].to_list()
    told = "no interval: it takes more memory than [sql] limit_bytes"
    assert (row(frame, "e2e_s")["note"], row(frame, "replica")["note"]) == (f"defines the sets; {told}", None)
    assert frame["mean_gap_low"].null_count() == len(frame)


def test_arms_are_sets_by_the_name_of_their_lever(room: EngineRoom) -> None:
    frame = explain(room, "treated:speculation", "disabled_in_place:speculation")
    assert row(frame, "lever.speculation")["note"] == "defines the sets"
    assert frame["key"][0] == "replica"
    assert (frame["requests_a"][0], frame["requests_b"][0]) == (2000, 2000)


def test_the_rest_is_where_a_is_known_not_to_hold(room: EngineRoom) -> None:
    found = explain(room, "e2e_s > 3", by=("replica",)).row(0, named=True)
    assert found["requests_a"] + found["requests_b"] == 3920


def test_period_condition_and_keys_narrow_what_is_compared(room: EngineRoom) -> None:
    since, until = datetime(2026, 11, 29, 9, tzinfo=UTC), datetime(2026, 11, 29, 10, tzinfo=UTC)
    frame = explain(room, "slow", since=since, until=until, where="model = 'it''s'", by=("hour", "lever.speculation", "prompt_tokens"))
    assert sorted(frame["key"]) == ["hour", "lever.speculation", "prompt_tokens"]
    assert row(frame, "hour")["condition"] == "date_trunc('hour', started_at) = '2026-11-29 09:00:00+00'"
    assert frame["requests_a"][0] + frame["requests_b"][0] == pytest.approx(1000 / 3 * 0.98, abs=2)


def test_a_bucket_follows_from_the_column_that_defines_a_set() -> None:
    columns = {"prompt_tokens": "BIGINT", "input_bucket": "VARCHAR", "model": "VARCHAR"}
    assert sets.comparison("prompt_tokens > 8", None, columns).defining == {"prompt_tokens", "input_bucket"}
    assert sets.comparison("input_bucket = 'model'", None, columns).defining == {"prompt_tokens", "input_bucket"}


def test_of_large_sets_the_same_part_is_looked_at_each_time(room: EngineRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = explain(room, "replica = 'replica-5'", by=("e2e_s", "model"))
    monkeypatch.setattr(sets, "LIMIT_REQUESTS", 400)
    first, again = (explain(room, "replica = 'replica-5'", by=("e2e_s", "model")) for _ in range(2))
    assert first.equals(again)
    found = row(first, "model")
    assert (found["sampled"], found["requests_a"], found["requests_b"]) == (True, 500, 3500)
    assert 320 < found["n_a"] < 480
    assert 320 < found["n_b"] < 480
    assert row(first, "e2e_s")["distance"] == pytest.approx(row(whole, "e2e_s")["distance"], abs=0.05)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"a": "slw"}, "set 'slw' is unknown; taken: slow, "),
        ({"a": "fast:e2e_s"}, "set 'fast:e2e_s' is unknown"),
        ({"a": "slow:ttfts"}, "'ttfts' is no number of requests; did you mean 'ttft_s'?"),
        ({"a": "slow:model"}, "'model' is no number of requests"),
        ({"a": "slow", "by": ("modl",)}, "key 'modl' is unknown; did you mean 'model'?"),
        ({"a": "model = 'nobody'"}, "set A (model = 'nobody') holds no request of this period; the other holds 4000, 0 are in neither"),
        ({"a": "model <> 'nobody'"}, "set B (the rest) holds no request"),
        ({"a": "slow", "limit": 0}, "limit 0: 1 or more"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_what_is_taken(room: EngineRoom, asked: dict[str, Any], said: str) -> None:
    with pytest.raises(ExplainError) as refused:
        explain(room, **asked)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "condition", ["1 = 1) union all (select 1", "model = (insert into requests_hot default values)", "true; drop table cells"]
)
def test_a_condition_can_do_no_more_than_read(room: EngineRoom, condition: str) -> None:
    with pytest.raises((SqlError, ExplainError)):
        explain(room, condition, "model = 'chat'")
    assert room.store.rows("select count(*) as n from requests_hot") == [{"n": 4000}]


@pytest.mark.parametrize("condition", ["true) or (true", "(true", " "])
def test_a_condition_does_not_shake_off_the_period(room: EngineRoom, condition: str) -> None:
    with pytest.raises(ExplainError, match=r"bracket|empty"):
        explain(room, "slow", since=datetime(2100, 1, 1, tzinfo=UTC), where=condition)
    with pytest.raises(ReportError, match=r"bracket|empty"):
        room.report(since=datetime(2100, 1, 1, tzinfo=UTC), where=condition)


def test_a_comment_at_the_end_of_a_condition_hides_nothing(room: EngineRoom) -> None:
    plain, commented = (explain(room, f"outcome = 'error'{end}", by=("replica",)) for end in ("", " -- failed"))
    assert plain.equals(commented)


def test_over_http_the_same_rows_come_and_errors_have_a_code_and_a_hint(room: EngineRoom) -> None:
    assert asked_of(room, a="slow", since="4h", by="replica,model").json() == explain(room, "slow", by=("replica", "model")).to_dicts()
    assert asked_of(room).json()["error"]["hint"] == "add ?a=slow"
    wrong = asked_of(room, a="model = chat")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, "invalid")
    assert "a text stands in single quotes" in wrong.json()["error"]["hint"]
    assert "looked_at" not in wrong.text


def test_a_connection_to_a_server_asks_for_what_a_local_one_does() -> None:
    asked: dict[str, str] = {}

    def answer(request: httpx.Request) -> httpx.Response:
        asked.update(request.url.params)
        return httpx.Response(200, json=[{"key": "model", "difference": 0.5}])

    remote = Remote("http://leverwatch.example")
    remote.http = httpx.Client(base_url=remote.url, transport=httpx.MockTransport(answer))
    with remote:
        frame = remote.explain("slow", since="1h", by=["model"], limit=3)
    assert asked == {"a": "slow", "since": "1h", "by": "model", "limit": "3"}
    assert frame.rows() == [("model", 0.5)]


def test_the_command_prints_rows_and_says_how_large_the_sets_are(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "slow", "--data", str(folder), "--by", "replica,model", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert [one["key"] for one in json.loads(out)] == ["replica", "model"]
    assert err == "leverwatch: A has 196 requests, B 3,724\n"
    assert main(["explain", "slow", "--data", str(folder), "--limit", "1"]) == 0
    assert "list_contains(flags, 'preempted')" in capsys.readouterr().out


def test_an_error_is_one_line_with_its_hint(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "model = chat", "--data", str(folder)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert 'Referenced column "chat" not found' in line
    assert line.endswith("; a text stands in single quotes, such as \"model = 'chat-70b'\"; columns are those of `requests`")
    assert main(["sql", "drop table cells", "--data", str(folder)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "; taken: one SELECT, WITH, FROM" in line


def test_effects_that_are_not_there_are_said_and_an_unknown_lever_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["effects", "--lever", "speculation", "--data", str(folder), "--format", "json"]) == 3
    out, err = capsys.readouterr()
    assert (json.loads(out), "there is no effect of speculation yet" in err) == ([], True)
    assert main(["effects", "--lever", "speculaton", "--data", str(folder)]) == 2
    assert "'speculation'" in capsys.readouterr().err


def test_effects_are_printed_with_their_interval(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened = EngineRoom(folder, Config())
    found = {"lever": "speculation", "segment": '{"model":"chat"}', "metric": "tpot_s", "gain": 0.25, "gain_low": 0.2, "gain_high": 0.3}
    found |= {
        "arm_a": "treated",
        "blocks": 24,
        "n_a": 200,
        "n_b": 210,
        "method": "t",
        "basis": "control",
        "coverage": 1.0,
        "turned_blocks": 3,
        "blocks_together": 2,
    }
    times = {"since": datetime(2026, 11, 29, 8, tzinfo=UTC), "until": datetime(2026, 11, 29, 10, tzinfo=UTC)}
    with opened.store.write() as transaction:
        transaction.insert("effects", pl.DataFrame([found | times]))
    opened.close()
    assert main(["effects", "--lever", "speculation", "--data", str(folder), "--format", "json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert told["turned_at"] == "2026-11-29T09:30:00+00:00"
    assert (told["segment"], told["gain"], told["gain_low"], told["gain_high"]) == ('{"model":"chat"}', 0.25, 0.2, 0.3)
