"""A server's numbers in, `/metrics` out: Prometheus text, or OpenMetrics where a scraper asks for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from fastapi import APIRouter, Request, Response
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family

from leverwatch.core_numbers import CoreNumbers
from leverwatch.engine_room import EngineRoom
from leverwatch.kafka_numbers import kafka_families
from leverwatch.ledger_rows import item_families, ledger_rows
from leverwatch.receiving import Receiving
from leverwatch.refused import Refused
from leverwatch.worker import Worker


class _Families:
    """What an encoder of prometheus_client reads."""

    def __init__(self, collect: Callable[[], Iterator[Family]]) -> None:
        self.collect = collect


def router(room: EngineRoom, worker: Worker, refused: Refused, receiving: Receiving | None = None) -> APIRouter:
    """`GET /metrics`."""
    started = time.monotonic()
    core = CoreNumbers(room.store, room.policies, room.config.serve.limit_metric_segments)

    def collect() -> Iterator[Family]:
        yield from item_families(ledger_rows(room, None))
        yield gauge("leverwatch_spool_backlog_bytes", "Bytes that were acknowledged and wait to be loaded.", room.spool.backlog_bytes)
        yield gauge("leverwatch_disk_free_bytes", "Bytes free on the disk of the data folder.", room.house.free_bytes())
        yield gauge("leverwatch_jobs_failing", "Jobs that fail and are tried again.", len(worker.errors))
        yield refused.family()
        if receiving is not None and receiving.kafka is not None:
            yield from kafka_families(receiving.kafka)
        yield gauge("leverwatch_uptime_seconds", "Seconds since the server started.", time.monotonic() - started)
        yield from core.families(room.clock())

    return page(collect)


def page(collect: Callable[[], Iterator[Family]]) -> APIRouter:
    """`GET /metrics` of what `collect` gives."""
    routes = APIRouter(tags=["health"])

    @routes.get("/metrics", responses={200: {"content": {"text/plain": {}, "application/openmetrics-text": {}}}}, response_class=Response)
    def metrics(request: Request) -> Response:
        """The server's own numbers and the core numbers of the segments, as Prometheus text, or OpenMetrics where that is accepted."""
        encode, media = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(_Families(collect)), headers={"content-type": media})

    return routes


def gauge(name: str, says: str, value: float) -> Family:
    """A family of one gauge."""
    return GaugeMetricFamily(name, says, value=value)
