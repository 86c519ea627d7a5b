"""Rows of the alerts' tables in, the same ready for JSON out: times with Z; segment, notice and counts as objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from alerts import wording
from alerts.silences import Silence

_OBJECTS = ("segment", "notice", "counts")


def shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as JSON."""
    return {name: _value(name, value) for name, value in row.items()}


def silence(one: Silence, now: datetime) -> dict[str, Any]:
    """A silence as JSON, with its state."""
    return {**shown(asdict(one)), "state": one.state(now)}


def _value(name: str, value: Any) -> Any:
    if isinstance(value, datetime):
        return wording.utc(value)
    return json.loads(value) if name in _OBJECTS and isinstance(value, str) else value
