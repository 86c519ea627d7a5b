"""The policies that a server judges by in, `GET /api/policies` out: one object a policy, with its text and where that is from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter

from leverwatch.policy_rows import policy_row
from leverwatch.policy_sources import Source


def router(sources: Sequence[Source]) -> APIRouter:
    """`GET /api/policies`: those that were read at the server's start."""
    routes = APIRouter(tags=["alerts"])

    @routes.get("/api/policies")
    def policies() -> list[dict[str, Any]]:
        """Every policy that is judged by, with its triggers, its text and where that is from."""
        return [{**policy_row(source.policy, source.origin), "text": source.text} for source in sources]

    return routes
