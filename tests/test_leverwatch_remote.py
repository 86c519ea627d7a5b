"""Where a server from afar takes OTLP over HTTP is asked of it; nothing is sent without TLS that was asked for with it."""

from __future__ import annotations

import logging

import httpx
import pytest
from dashboards_rows import TURNED_AT, serving

from dashboards.studio import Studio
from leverwatch.connection import ConnectError
from leverwatch.not_http import SAID, Hint
from leverwatch.remote import Remote
from queries.sandbox import Sandbox


def remote(url: str, scheme: str) -> Remote:
    made = Remote(url)
    told = {"otlp_http": {"scheme": scheme, "port": 4999}}
    made.http = httpx.Client(base_url=url, transport=httpx.MockTransport(lambda _: httpx.Response(200, json=told)))
    return made


@pytest.mark.parametrize(
    ("url", "scheme", "found"),
    [
        ("http://127.0.0.1:8080", "http", "http://127.0.0.1:4999"),
        ("http://[::1]:8080", "http", "http://[::1]:4999"),
        ("https://levers.example/below", "https", "https://levers.example:4999"),
    ],
)
def test_the_port_is_the_servers_and_the_host_that_of_the_url(url: str, scheme: str, found: str) -> None:
    with remote(url, scheme) as asked:
        assert asked.find_otlp_http() == asked.otlp_http == found


def test_a_statements_moments_go_as_text_that_is_taken_as_a_moment(page_sandbox: Sandbox, studio: Studio) -> None:
    params = {"since": TURNED_AT, "day": TURNED_AT.date(), "metrics": ["net_itl_s"]}
    counts = ", ".join(f"count(*) filter (started_at >= ${name}) as {name}" for name in ("since", "day"))
    sql = f"select {counts}, $metrics[1] as one from requests"
    with serving(page_sandbox, studio) as address, Remote(address) as asked:
        found = asked.sql(sql, params).row(0, named=True)
    assert found["one"] == "net_itl_s"
    assert 0 < found["since"] < found["day"]


def test_a_token_shown_within_tls_does_not_leave_it() -> None:
    with remote("https://levers.example", "http") as asked, pytest.raises(ConnectError, match="port 4999 for OTLP over HTTP has no TLS"):
        asked.find_otlp_http()


def test_a_call_that_is_no_http_is_logged_with_the_port_of_grpc(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("test.not_http")
    log.addFilter(Hint(4317, is_tls=False))
    log.warning(SAID)
    log.warning("something else")
    assert [record.getMessage() for record in caplog.records] == [
        f"{SAID} the ports of the pages and of OTLP over HTTP speak HTTP without TLS; OTLP over gRPC is taken on port 4317",
        "something else",
    ]
