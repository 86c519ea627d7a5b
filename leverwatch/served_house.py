"""A running server in, what its pages show of the server itself out: the answers of `/api/doctor`, `/api/storage` and `/readyz`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from leverwatch import house_api
from leverwatch.doctor import diagnose
from leverwatch.engine_room import EngineRoom
from leverwatch.kept import Kept
from leverwatch.remedies import COLUMNS, remedy

_AGES = {"cells": "cells_max_age", "verdicts": "decisions_max_age", "flips": "decisions_max_age", "deliveries": "decisions_max_age"}


class ServedHouse:
    """What pages ask of the server (`dashboards.house.House`)."""

    def __init__(self, room: EngineRoom, state: Callable[[], Mapping[str, Any]]) -> None:
        self._room, self._state = room, state
        self._diagnosis = Kept(lambda: diagnose(room), room.clock)
        self._storage = Kept(lambda: house_api.stored(room), room.clock)

    def diagnosis(self) -> tuple[datetime, Mapping[str, Any]]:
        """When it was made, and the diagnosis of the last hour."""
        return self._diagnosis.answer()

    def storage(self) -> tuple[datetime, Mapping[str, Any]]:
        """When it was asked, and what the folder holds."""
        return self._storage.answer()

    def state(self) -> Mapping[str, Any]:
        """Whether exports are taken and the jobs run."""
        return self._state()

    def ages(self) -> Mapping[str, str]:
        """How long each relation stays."""
        asked = msgspec.to_builtins(self._room.config.retention)
        own = {name.removesuffix("_max_age"): text for name, text in asked.items() if name.endswith("_max_age")}
        return own | {relation: asked[key] for relation, key in _AGES.items()}

    def receivers(self) -> Sequence[Mapping[str, Any]]:
        """The configured receivers of notices."""
        own = self._room.config.receivers
        return [{"name": one.name, "kind": one.kind, "heartbeat_s": one.heartbeat_s} for one in own]

    def remedies(self, engine: str | None) -> Mapping[str, str]:
        """Of each column of requests, what brings it."""
        return {column: remedy(column, engine or "") for column in COLUMNS}
