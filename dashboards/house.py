"""What pages ask of the server itself: the facade implements it over what runs, tests over what they make up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol


class House(Protocol):
    """What is known of a running server beside its tables. Answers are those of the API; slow ones may be some seconds old."""

    def diagnosis(self) -> tuple[datetime, Mapping[str, Any]]:
        """When it was made, and what `GET /api/doctor` answers: the last hour of events."""
        ...

    def storage(self) -> tuple[datetime, Mapping[str, Any]]:
        """When it was asked, and what `GET /api/storage` answers."""
        ...

    def state(self) -> Mapping[str, Any]:
        """What `GET /readyz` answers."""
        ...

    def ages(self) -> Mapping[str, str]:
        """How long each relation stays, such as `90d`; empty is forever."""
        ...

    def receivers(self) -> Sequence[Mapping[str, Any]]:
        """The configured receivers of notices: `name`, `kind`, and `heartbeat_s` (null: none is asked for). No address and no secret."""
        ...

    def remedies(self, engine: str | None) -> Mapping[str, str]:
        """Of each column of requests, why one of this engine may lack it and what brings it."""
        ...
