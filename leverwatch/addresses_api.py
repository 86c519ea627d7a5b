"""Where a running server takes OTLP over HTTP in, the same over its API out: what `leverwatch load --url` asks first."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from leverwatch.receiving import Receiving


def router(receiving: Receiving) -> APIRouter:
    """`GET /api/addresses`."""
    routes = APIRouter(tags=["house"])

    @routes.get("/api/addresses")
    def addresses() -> dict[str, Any]:
        """The port that takes OTLP over HTTP, and its scheme. The host is the one that this was asked at: all ports listen alike."""
        return {"otlp_http": {"scheme": "https" if receiving.is_tls else "http", "port": receiving.otlp_http_port}}

    return routes
