"""The replicas' pages: each has its own address, and there is none before there is something to show."""

from __future__ import annotations

import httpx

from demo.pages import Pages


def test_a_page_is_served_under_its_replica_s_name_once_there_is_one() -> None:
    with Pages() as pages:
        assert httpx.get(pages.url("r-0")).status_code == 503
        pages.show({"r-0": "a 1\n", "r-1": "a 2\n"})
        answer = httpx.get(pages.url("r-1"))
        assert (answer.status_code, answer.text) == (200, "a 2\n")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        pages.show({"r-1": "a 3\n"})
        assert httpx.get(pages.url("r-1")).text == "a 3\n"
        assert httpx.get(pages.url("r-1").replace("/metrics", "/other")).status_code == 404
