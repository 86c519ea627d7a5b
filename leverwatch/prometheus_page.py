"""Families of numbers in, `/metrics` out: Prometheus text, or OpenMetrics where a scraper asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fastapi import APIRouter, Request, Response
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family


class _Families:
    """What an encoder of prometheus_client reads."""

    def __init__(self, collect: Callable[[], Iterator[Family]]) -> None:
        self.collect = collect


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
