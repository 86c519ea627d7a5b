"""Dynamo's pages have the recorded families: names, types, labels and edges of buckets; and they count what happened."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import RECORDINGS
from demo_dispatches import events, looks, requests
from prometheus_client.parser import text_string_to_metric_families

from demo.engines import dynamo_legs
from demo.engines.dynamo_frontend_page import FrontendPage
from demo.engines.dynamo_page import Page
from demo.records import Request


def families(text: str) -> dict[str, Any]:
    """Of each family: its type, the keys of its labels, and the edges of its buckets."""
    found = {}
    for family in text_string_to_metric_families(text):
        keys = {frozenset(sample.labels.keys() - {"le"}) for sample in family.samples}
        found[family.name] = family.type, keys, frozenset(float(one.labels["le"]) for one in family.samples if "le" in one.labels)
    return found


def recorded(name: str, port: int) -> dict[str, Any]:
    path = RECORDINGS / name / f"metrics-{port}.prom"
    if not path.is_file():
        pytest.skip(f"no recording beside the checkout: {path}")
    return families(path.read_text())


def pages(told: list[Any]) -> dict[str, str]:
    """The text of each worker's page after all that happened."""
    made: dict[str, Page] = {}
    for event in told:
        if isinstance(event, Request):
            for at in {event.at, event.prefill_at or event.at}:
                made.setdefault(at.replica, Page(at)).observe(event)
    return {replica: page.text(looks(told)[replica]) for replica, page in made.items()}


def frontend(told: list[Any]) -> str:
    page = FrontendPage("m-8b")
    for event in told:
        if isinstance(event, Request):
            page.observe(event)
    return page.text(list(looks(told).values()))


@pytest.mark.parametrize(
    ("name", "port", "role"), [("dynamo-agg", 18081, "unified"), ("dynamo-disagg", 18081, "prefill"), ("dynamo-disagg", 18082, "decode")]
)
def test_a_worker_s_page_has_all_recorded_families_and_no_other(name: str, port: int, role: str) -> None:
    told, real = events("dynamo", split=role != "unified"), recorded(name, port)
    for replica, text in pages(told).items():
        if looks(told)[replica].of.role == role:
            ours = families(text)
            assert {key: ours[key] for key in ours} == {key: real[key] for key in real}


@pytest.mark.parametrize(("name", "split"), [("dynamo-agg", False), ("dynamo-disagg", True)])
def test_the_families_of_a_frontend_s_page_are_recorded_ones(name: str, split: bool) -> None:
    ours, real = families(frontend(events("dynamo", split=split))), recorded(name, 18000)
    assert len(ours) > 15
    assert ours == {key: real.get(key) for key in ours}


def samples(text: str) -> dict[str, float]:
    """Values by name, summed over labels but for the edges of buckets."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


def test_the_pages_count_what_happened() -> None:
    told = events("dynamo", rate=12.0)
    served = [event for event in told if isinstance(event, Request)]
    of_frontend, of_workers = samples(frontend(told)), [samples(text) for text in pages(told).values()]
    assert of_frontend["dynamo_frontend_requests_total"] == len(served)
    assert sum(page["dynamo_component_requests_total"] for page in of_workers) == len(served)
    assert of_frontend["dynamo_frontend_output_tokens_total"] == sum(request.output_tokens for request in served)
    assert of_frontend["dynamo_frontend_cached_tokens_sum"] == sum(request.cached_tokens for request in served) > 0
    assert of_frontend["dynamo_frontend_time_to_first_token_seconds_sum"] == pytest.approx(sum(request.ttft_s for request in served))
    decoded = sum(request.decode_s for request in served if request.output_tokens > 1)
    assert sum(page["vllm:inter_token_latency_seconds_sum"] for page in of_workers) == pytest.approx(decoded)
    assert sum(page["vllm:num_requests_running"] for page in of_workers) == sum(look.running for look in looks(told).values()) > 0


def test_a_worker_s_id_is_in_hex_on_its_page_and_decimal_in_its_spans() -> None:
    request = requests("dynamo")[0]
    told = pages([request, *looks(events("dynamo")).values()])[request.at.replica]
    assert f'worker_id="{dynamo_legs.worker_id(request.at.replica):x}"' in told
