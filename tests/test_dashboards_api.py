"""The HTTP faces of pages and queries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import dashboards_rows
import httpx
import polars as pl
import pyarrow as pa
import pytest

from dashboards.studio import Studio
from queries.sandbox import Sandbox


@pytest.fixture(scope="module")
def client(page_sandbox: Sandbox, studio: Studio) -> Iterator[httpx.Client]:
    with dashboards_rows.serving(page_sandbox, studio) as address, httpx.Client(base_url=address, timeout=30) as opened:
        yield opened


def _sql(client: httpx.Client, sql: str, **more: object) -> tuple[int, dict[str, object]]:
    answer = client.post("/api/sql", json={"sql": sql, **more})
    return answer.status_code, answer.json()


def test_the_page_may_load_only_from_its_own_server(client: httpx.Client) -> None:
    for path in ("/", "/segment"):
        answer = client.get(path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'self'; style-src 'self' 'unsafe-inline';")
        assert "unsafe-eval" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_no_page_names_another_host(client: httpx.Client) -> None:
    for path in ("/", "/segment?since=1h", "/docs", "/assets/page.css", "/assets/refresh.js"):
        text = client.get(path).text.replace(str(client.base_url).rstrip("/"), "").replace("http://www.w3.org/", "")
        assert not re.search(r"https?://|[\"'(]//", text), path


def test_the_docs_list_every_route_with_its_parameters_and_an_example(client: httpx.Client) -> None:
    html = client.get("/docs").text
    assert "<script" not in html
    assert 'href="openapi.json"' in html
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        for method, operation in methods.items():
            assert f'<section class="route" id="{method}{path}">' in html
            assert f"{client.base_url}{path}".replace("//api", "/api") in html
            assert all(f"<code>{parameter['name']}</code>" in html for parameter in operation.get("parameters", []))
    assert "one of table, json, csv, parquet, arrow" in html


def test_assets_are_served_by_name_only(client: httpx.Client) -> None:
    assert client.get("/assets/refresh.js").headers["content-type"].startswith("text/javascript")
    assert client.get("/assets/page.css").status_code == 200
    assert client.get("/assets/nope").status_code == 404
    assert client.get("/assets/..%2fapi.py").status_code == 404


def test_pages_drawn_at_the_same_time_are_whole(client: httpx.Client) -> None:
    with ThreadPoolExecutor(4) as pool:
        pages = list(pool.map(lambda since: client.get(f"/segment?since={since}").text, ["1h", "6h", "24h", "7d"] * 2))
    assert all(page.rstrip().endswith("</html>") for page in pages)


def test_a_report_is_an_array_of_objects(client: httpx.Client) -> None:
    rows = client.get("/api/report?by=model&metrics=tpot_s,ttft_s&since=24h").json()
    assert [row["requests"] for row in rows] == [3120, 960, 720, 96]
    assert set(rows[0]) >= {"model", "tpot_s", "tpot_s_n", "tpot_s_coverage", "tpot_s_provenance", "ttft_s_p95"}


def test_a_report_by_hour_gives_iso_times(client: httpx.Client) -> None:
    rows = client.get("/api/report?by=hour&metrics=tpot_s&since=2026-03-02T10:00:00Z&until=2026-03-02T11:00").json()
    assert [row["hour"] for row in rows] == ["2026-03-02T10:00:00Z"]


@pytest.mark.parametrize("query", ["by=nope", "metrics=nope", "since=yesterday", "where=1"])
def test_a_question_that_cannot_be_asked_is_an_error_with_a_message(client: httpx.Client, query: str) -> None:
    answer = client.get(f"/api/report?{query}")
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "invalid"
    assert answer.json()["error"]["message"]


def test_effects_carry_the_segment_as_an_object(client: httpx.Client) -> None:
    rows = client.get("/api/effects?lever=speculation").json()
    assert {"model": "llama-3.3-70b", "hardware": "h100", "topology": "tp8", "input_bucket": "<512", "temperature_bucket": "<0.3"} in [
        row["segment"] for row in rows
    ]
    assert client.get("/api/effects").status_code == 400


def test_sql_answers_columns_rows_and_whether_it_was_cut(client: httpx.Client) -> None:
    status, answer = _sql(client, "select model, count(*) as n from requests where tpot_s is null group by 1 order by n desc, 1", limit=1)
    assert status == 200
    assert answer["columns"] == [{"name": "model", "type": "VARCHAR"}, {"name": "n", "type": "BIGINT"}]
    assert answer["rows"] == [["llama-3.3-70b", 3120]]
    assert (answer["row_count"], answer["truncated"]) == (1, True)
    assert isinstance(answer["elapsed_s"], float)


def test_sql_takes_parameters(client: httpx.Client) -> None:
    assert _sql(client, "select $a + 1 as b", params={"a": 41})[1]["rows"] == [[42]]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"sql": "select * from read_csv('/etc/passwd')"}, 403, "refused"),
        ({"sql": "selec 1"}, 400, "invalid"),
        ({"sql": "select 1", "limit": 0}, 400, "invalid"),
        ({"sql": "select 1", "format": "xml"}, 400, "invalid"),
        ({"sql": "select 1", "limits": 5}, 400, "invalid"),
        ({"sql": 5}, 400, "invalid"),
        ({"sql": "select length(repeat('x', 4000000000))"}, 422, "memory_limit"),
        ({"sql": "select count(*) from range(1000000) a, range(1000000) b", "limit_s": 1}, 504, "time_limit"),
    ],
)
def test_an_error_has_its_status_a_code_and_a_message(client: httpx.Client, body: dict[str, object], status: int, code: str) -> None:
    answer = client.post("/api/sql", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert set(answer.json()["error"]) == {"code", "message", "hint"}


def test_a_body_that_is_too_large_or_no_json_is_invalid(client: httpx.Client) -> None:
    assert client.post("/api/sql", content=b"select 1").status_code == 400
    assert client.post("/api/sql", content=b'{"sql": "' + b"x" * (2 << 20) + b'"}').status_code == 413


def test_sql_gives_the_other_formats_too(client: httpx.Client) -> None:
    def ask(kind: str) -> bytes:
        return client.post("/api/sql", json={"sql": "select 1 as a", "format": kind}).content

    assert ask("csv") == b"a\n1\n"
    assert ask("table") == b"a\n-\n1\n(1 row)\n"
    assert pl.read_parquet(ask("parquet")).to_dicts() == [{"a": 1}]
    assert pa.ipc.open_stream(ask("arrow")).read_all().to_pylist() == [{"a": 1}]


def test_the_sql_endpoint_is_documented(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert set(paths) == {"/api/report", "/api/effects", "/api/break-even", "/api/sql", "/api/sql/{run_id}", "/api/schema"}
    assert "sql" in paths["/api/sql"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
