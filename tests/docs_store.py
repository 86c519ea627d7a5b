"""The store that commands of the documents are asked of: the pages' made-up day, moved to end now, under names that the documents use."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dashboards_rows
import pytest
from dashboards_rows import FLEETS

from pipeline.segments import canonical

MODELS = {"llama-3.3-70b": "chat-70b"}
DAY = timedelta(hours=24)
FAILED = "update requests_hot set outcome = 'error' where request_id like '%77'"
BREAK_EVEN = {
    "lever": "speculation",
    "key": "batch",
    "metric": "tpot_s",
    "basis": "control",
    "buckets": ["<2", "2-3", "4-7"],
    "blocks": [40, 30, 30],
    "gains": [0.3, 0.1, -0.2],
    "gains_low": [0.2, -0.1, -0.3],
    "gains_high": [0.4, 0.3, -0.1],
    "signs": ["pays", "open", "loses"],
    "pays_edge": 1,
    "loses_edge": 4,
    "point": 3.0,
    "line_point": None,
    "state": "partly",
    "note": "pays up to <2, loses from 4-7 on",
}


def make(folder: Path) -> None:
    """A data folder with the day before this block."""
    now = datetime.now(UTC)
    now -= timedelta(seconds=now.timestamp() % 300)
    fleets = tuple(replace(fleet, model=MODELS.get(fleet.model, fleet.model)) for fleet in FLEETS)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(dashboards_rows, "NOW", now)
        patched.setattr(dashboards_rows, "TURNED_AT", now - timedelta(hours=6))
        patched.setattr(dashboards_rows, "FLEETS", fleets)
        with dashboards_rows.filled(folder) as store, store.write() as transaction:
            row = BREAK_EVEN | {"segment": canonical(fleets[1].keys), "since": now - DAY, "until": now}
            columns = ", ".join(f'${name} as "{name}"' for name in row)
            transaction.execute(f"insert into break_even by name select {columns}", row)
            transaction.execute(FAILED)
