"""Ad-hoc SQL over HTTP: stopping, limits, the schema, saved questions, files."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import dashboards_rows
import httpx
import polars as pl
import pyarrow as pa
import pytest
from dashboards_rows import NOW
from fastapi import Request

from dashboards import questions_api, sql_api
from dashboards.studio import Studio
from queries.sandbox import Sandbox
from queries.store import Store

NEVER_ENDS = "select count(*) from range(10000000) a, range(10000000) b, range(10000000) c"


@pytest.fixture(scope="module")
def client(page_store: Store, page_sandbox: Sandbox, studio: Studio) -> Iterator[httpx.Client]:
    routes = questions_api.router(page_store, lambda: NOW)
    with dashboards_rows.serving(page_sandbox, studio, more=[routes]) as address, httpx.Client(base_url=address, timeout=60) as opened:
        yield opened


def _when_running(client: httpx.Client, run_id: str) -> dict[str, object]:
    until_s = time.monotonic() + 30
    while (answer := client.get(f"/api/sql/{run_id}")).status_code == 404 or answer.json()["state"] == "waiting":
        assert time.monotonic() < until_s
        time.sleep(0.02)
    told: dict[str, object] = answer.json()
    return told


def test_a_statement_says_how_long_it_runs_and_is_stopped_by_its_id(client: httpx.Client) -> None:
    answers: list[httpx.Response] = []
    asked = {"sql": NEVER_ENDS, "id": "mine", "limit": 5, "limit_s": 20}
    thread = threading.Thread(target=lambda: answers.append(client.post("/api/sql", json=asked)))
    thread.start()
    told = _when_running(client, "mine")
    assert told["limits"] == {"rows": 5, "seconds": 20.0, "bytes": 1 << 30}
    assert client.delete("/api/sql/mine").json() == {"id": "mine", "state": "cancelled"}
    thread.join(15)
    assert (answers[0].status_code, answers[0].json()["error"]["code"]) == (409, "cancelled")
    assert client.delete("/api/sql/mine").status_code == client.get("/api/sql/mine").status_code == 404


def test_a_statement_whose_caller_hangs_up_is_stopped(client: httpx.Client, page_sandbox: Sandbox) -> None:
    def leave() -> None:
        with suppress(httpx.TimeoutException), httpx.Client(base_url=client.base_url, timeout=1.5) as other:
            other.post("/api/sql", json={"sql": NEVER_ENDS, "id": "left"})

    leave()
    until_s = time.monotonic() + 15
    while page_sandbox.runs.find("left") is not None:
        assert time.monotonic() < until_s
        time.sleep(0.02)


def test_a_statement_whose_caller_hung_up_before_it_had_a_thread_is_stopped_once_it_has(page_sandbox: Sandbox) -> None:
    def slow_to_begin(run_id: str) -> bool:
        time.sleep(0.5)
        with page_sandbox.runs.on_their_way(run_id, 1, 1.0) as run:
            until_s = time.monotonic() + 10
            while not run.is_stopped and time.monotonic() < until_s:
                time.sleep(0.02)
            return run.is_stopped

    async def gone() -> dict[str, str]:
        return {"type": "http.disconnect"}

    asked = Request({"type": "http", "method": "POST", "path": "/api/sql", "headers": []}, gone)
    assert asyncio.run(sql_api.unless_hung_up(asked, page_sandbox, None, slow_to_begin))


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"id": "a b"}, "1 to 64 letters"),
        ({"limit_s": 61}, "limit_s 61: above 0"),
        ({"limit": 2_000_000}, "limit 2,000,000: 1 to 1,000,000 rows are taken"),
        ({"identity": 1}, "unknown field `identity`"),
        ({"params": {"a": {"b": 1}}}, "Expected 0, got 1"),
    ],
)
def test_what_cannot_be_asked_is_an_error_with_what_is_taken(client: httpx.Client, more: dict[str, object], told: str) -> None:
    answer = client.post("/api/sql", json={"sql": "select 1", **more})
    assert answer.status_code == 400
    assert told in answer.json()["error"]["message"]


def test_a_cut_answer_says_why_and_what_to_do(client: httpx.Client) -> None:
    answer = client.post("/api/sql", json={"sql": "from range(5)", "limit": 2}).json()
    assert answer["truncated"]
    assert answer["note"].startswith("only the first 2 rows are here")
    assert client.post("/api/sql", json={"sql": "select 1"}).json()["note"] is None


def test_the_schema_tells_tables_metrics_and_functions(client: httpx.Client) -> None:
    told = client.get("/api/schema").json()
    first = {column["name"]: column for column in told["tables"][0]["columns"]}
    assert first["ttft_s"] == {"name": "ttft_s", "type": "DOUBLE", "unit": "s", "what": "to the first token"}
    assert {"net_itl_s", "skipped_token_ratio"} <= {metric["name"] for metric in told["metrics"]}
    assert {"name", "what", "example"} == set(told["functions"][0])


def test_questions_are_kept_read_and_taken_away_over_http(client: httpx.Client) -> None:
    draft = {"name": "big-ones", "title": "<b>Big</b> ones", "sql": "select $n::int as n", "params": {"n": "7"}}
    assert client.post("/api/questions", json=draft).json() == {"name": "big-ones", "version": 1}
    assert client.post("/api/questions", json=draft).status_code == 201
    one = client.get("/api/questions/big-ones").json()
    assert [version["version"] for version in one["versions"]] == [2, 1]
    names = [question["name"] for question in client.get("/api/questions").json()]
    assert {"hot-replicas", "big-ones"} <= set(names)
    assert "&lt;b&gt;Big&lt;/b&gt; ones" in (page := client.get("/sql?question=big-ones").text)
    assert '<td class="num">7</td>' in page
    assert client.delete("/api/questions/big-ones").json() == {"name": "big-ones", "is_deleted": True}
    assert client.delete("/api/questions/big-ones").status_code == client.get("/api/questions/big-ones").status_code == 404
    assert client.post("/api/questions", json={**draft, "name": "tenants"}).status_code == 400
    assert client.post("/api/questions", content=b"[" * 100_000, headers={"content-type": "application/json"}).status_code == 400


def test_an_answer_is_a_file_in_every_format(client: httpx.Client, tmp_path: Path) -> None:
    asked = {"sql": "select $n::int as n, '=1+1' as \"-f\", '<b>' as t", "p.n": "3"}
    csv = client.get("/answer.csv", params=asked)
    assert csv.text == "n,'-f,t\n3,'=1+1,<b>\n"  # what a spreadsheet would run is text; JSON and the API keep it as it is
    assert csv.headers["content-disposition"] == 'attachment; filename="answer.csv"'
    assert json.loads(client.get("/answer.json", params=asked).text)["rows"] == [[3, "=1+1", "<b>"]]
    (tmp_path / "a.parquet").write_bytes(client.get("/answer.parquet", params=asked).content)
    assert pl.read_parquet(tmp_path / "a.parquet")["n"].to_list() == [3]
    assert pa.ipc.open_stream(client.get("/answer.arrow", params=asked).content).read_all().num_rows == 1
    assert client.get("/answer.exe", params=asked).status_code == 404
    assert client.get("/answer.csv").json()["error"]["message"] == "no statement came"
    assert client.get("/answer.csv", params=asked, headers={"sec-fetch-site": "cross-site"}).status_code == 403


@pytest.mark.parametrize("path", ["/api/sql", "/api/questions"])
def test_a_body_that_is_too_long_is_413_and_not_read_to_its_end(client: httpx.Client, path: str) -> None:
    answer = client.post(path, json={"sql": "x" * sql_api.MOST_BODY_BYTES})
    assert (answer.status_code, answer.json()["detail"]) == (413, "the body is longer than 1,048,576 bytes")
