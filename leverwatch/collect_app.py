"""What a collector answers on its own port: whether it takes exports, its numbers, and quality scores that are posted to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.metrics_core import Metric as Family

import collectors.api
from collectors.lake_sink import LakeSink
from leverwatch import prometheus_page
from leverwatch.kafka_numbers import kafka_families
from leverwatch.observe.house_numbers import process_families, warning_family
from leverwatch.observe.observer import Observer
from leverwatch.prometheus_page import gauge
from leverwatch.receiving import Receiving
from leverwatch.refused import Refused
from leverwatch.version import __version__


def application(sink: LakeSink, receiving: Receiving, numbers: Callable[[], Iterator[Family]]) -> FastAPI:
    """Health, metrics and evaluations on one port."""
    made = FastAPI(title="Leverwatch collector", version=__version__, docs_url=None, redoc_url=None)
    made.include_router(collectors.api.evaluations_router(receiving.door))
    made.include_router(prometheus_page.page(numbers))
    made.include_router(_health(sink, receiving))
    return made


def _health(sink: LakeSink, receiving: Receiving) -> APIRouter:
    routes = APIRouter(tags=["health"])

    @routes.get("/healthz")
    def healthz() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @routes.get("/readyz")
    def readyz(request: Request) -> JSONResponse:
        """Exports are taken and the lake can be written; 503 with the reason where not."""
        state = _state(sink, receiving)
        shown = state if request.scope.get("leverwatch.shows_detail", True) else {"status": state["status"]}
        return JSONResponse(shown, status_code=503 if state["errors"] else 200)

    return routes


def _state(sink: LakeSink, receiving: Receiving) -> dict[str, Any]:
    errors: dict[str, str] = {}
    if not sink.is_writing:
        errors["sink"] = "the thread that writes to the lake has ended; restart the collector"
    if sink.problem:
        errors["lake"] = sink.problem
    if receiving.door.closed:
        errors["door"] = "the collector is stopping"
    state = {"status": "failing" if errors else "ok", "waiting_bytes": sink.waiting_bytes, "errors": errors}
    warnings = dict(receiving.warnings())
    return state | ({"warnings": warnings} if warnings else {})


def families(sink: LakeSink, refused: Refused, receiving: Receiving, observer: Observer) -> Iterator[Family]:
    """The numbers of a collector."""
    stored = sink.stored
    items = GaugeMetricFamily("leverwatch_items", "Items of every signal by what became of them.", labels=["signal", "outcome"])
    for (signal, outcome), count in sorted(stored.items.items()):
        items.add_metric([signal, outcome], count)
    yield items
    says = "Seconds that rounds took to read bodies, and to commit them."
    rounds = SummaryMetricFamily("leverwatch_collect_round_seconds", says, labels=["part"])
    rounds.add_metric(["read"], stored.rounds, stored.read_s)
    rounds.add_metric(["commit"], stored.rounds, stored.commit_s)
    yield rounds
    says = "Rounds whose bodies could not be stored and were refused for later."
    yield CounterMetricFamily("leverwatch_collect_failed_rounds", says, value=stored.failed_rounds)
    is_failing = bool(sink.problem) or not sink.is_writing
    yield gauge("leverwatch_collect_failing", "1 while the newest round could not be stored.", float(is_failing))
    yield gauge("leverwatch_collect_waiting_bytes", "Bytes received and not stored yet; none of them is acknowledged.", sink.waiting_bytes)
    yield refused.family()
    yield from observer.door.families()
    yield from observer.pages.families()
    yield warning_family(receiving.warnings())
    if receiving.kafka is not None:
        yield from kafka_families(receiving.kafka)
    yield from process_families("collect", observer)
