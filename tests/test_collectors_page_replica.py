"""A page names the replica that it is as requests call it: Dynamo's workers do so in hexadecimal, on some of their lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from demo_dispatches import BEGAN_NS, MINUTE_NS, events, requests
from prometheus_client.parser import text_string_to_metric_families

from collectors import meanings
from collectors.page_replica import OwnName, own_name
from collectors.prometheus_text import Scrape, samples, spooled
from collectors.samples import Sample
from demo.engines import dynamo, dynamo_legs
from demo.engines.dynamo_page import Page
from demo.engines.exports import Exports
from demo.records import Reading, Request
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom

WORKER = """# TYPE dynamo_component_inflight_requests gauge
dynamo_component_inflight_requests{dynamo_endpoint="generate",worker_id="f3935821bd275c0"} 0
dynamo_component_inflight_requests{dynamo_endpoint="query",worker_id="f3935821bd275c0"} 0
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0"} 3
"""
FRONTEND = """# TYPE dynamo_component_uptime_seconds gauge
dynamo_component_uptime_seconds{worker_id="59cbf492afc31afa"} 11.8
# TYPE dynamo_frontend_worker_active_decode_blocks gauge
dynamo_frontend_worker_active_decode_blocks{worker_id="1096966817170224576"} 4
"""


def replicas(text: str, **scrape: object) -> set[str]:
    found = samples(Scrape(**({"instance": "h:1"} | scrape)), text.encode(), 1, ("leverwatch.replica",), meanings.shipped().own_names)
    return {one.replica for one in found if isinstance(one, Sample)}


def test_every_line_of_a_workers_page_is_of_the_worker_as_spans_call_it() -> None:
    assert replicas(WORKER) == {"1096966817170224576"}
    assert replicas(WORKER, replica_from="worker_id") == {"1096966817170224576"}


def test_what_a_configuration_names_wins_over_what_a_page_says() -> None:
    assert replicas(WORKER, replica="w-0") == {"w-0"}
    assert replicas(WORKER, labels={"leverwatch.replica": "w-1"}) == {"w-1"}


def test_a_frontend_is_no_worker_and_two_workers_on_a_page_name_none() -> None:
    assert replicas(FRONTEND) == {"h:1"}
    other = 'dynamo_component_inflight_requests{worker_id="1"} 0\n'
    assert replicas(WORKER.replace("# TYPE vllm", other + "# TYPE vllm")) == {"h:1"}


@pytest.mark.parametrize("said", ["", "w-0", "1_0", "-1f", "0" * 9 + "g", "f" * 9_000])
def test_a_label_without_the_form_names_nobody(said: str) -> None:
    text = f'# TYPE m gauge\nm{{id="{said}"}} 1\n'
    assert own_name(text_string_to_metric_families(text), [OwnName("m", "id", "hexadecimal")]) == ("", "")


def test_dynamos_requests_have_the_kv_usage_and_the_batch_of_their_workers_page(tmp_path: Path) -> None:
    room = EngineRoom(tmp_path, Config())
    pages: dict[str, Page] = {}
    emitter = dynamo.Emitter()
    told = events("dynamo")
    try:
        for event in told:
            if isinstance(event, Reading):
                text = pages.setdefault(event.of.replica, Page(event.of)).text(event)
                body = spooled(Scrape("10.0.0.6:18081"), text.encode())
                room.spool.append("scrapes", "scrape:10.0.0.6", event.at_ns, body).result(10)
        spans = [span for event in told if isinstance(event, Request) for span in emitter.spans(event)]
        spans += list(emitter.spans(requests("dynamo")[0]._replace(attempt=7, started_ns=BEGAN_NS + 60 * MINUTE_NS)))
        for body, _ in Exports().bodies(spans):
            room.spool.append("traces", "10.0.0.1", BEGAN_NS + 60 * MINUTE_NS, body).result(10)
        room.drain()
        found = room.store.rows(
            "select replica, count(*) as n, count(kv_usage) as usage, count(batch_at_admission) as batch "
            "from requests where is_settled group by all"
        )
    finally:
        room.close()
    known = {str(dynamo_legs.worker_id(event.of.replica)) for event in told if isinstance(event, Reading)}
    assert {row["replica"] for row in found} == known
    assert all(row["usage"] > row["n"] / 2 and row["batch"] > row["n"] / 2 for row in found), found


@pytest.mark.parametrize("name", ["dynamo-agg", "dynamo-disagg", "dynamo-reqtrace"])
def test_recorded_pages_name_the_workers_that_recorded_spans_name(tmp_path: Path, recordings: Path, name: str) -> None:
    named = set().union(*(replicas(path.read_text()) for path in (recordings / name).glob("metrics-1808*.prom")))
    room = EngineRoom(tmp_path, Config())
    try:
        for path in sorted((recordings / name / "traces").glob("*.pb")):
            room.spool.append("traces", "10.0.0.1", BEGAN_NS, path.read_bytes()).result(10)
        room.drain()
        asked = room.store.rows("select distinct unnest([prefill_replica, decode_replica, replica]) as replica from requests")
    finally:
        room.close()
    assert {row["replica"] for row in asked} - {None} == named
    assert len(named) == 2
