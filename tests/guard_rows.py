"""Made-up settled requests and samples, as the guard is given them: all columns of the tables, what is not said is null."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from queries.store import Store

T0 = datetime(2026, 3, 4, 12, tzinfo=UTC)
WINDOW = timedelta(minutes=5)


@functools.cache
def schema(table: str) -> pl.Schema:
    """The columns of a table as the store hands them out."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        columns = store.frame(f"select * from {table} limit 0").schema
        store.close()
    return columns


def requests(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Settled requests of vLLM replica `r1`, one a second; `provenance` of each value said is `span`, unless stated."""
    columns = schema("requests_hot")
    whole = []
    for number, row in enumerate(rows):
        started_at = T0 + timedelta(seconds=number % 300)
        usual = {"request_id": f"r-{number}", "trace_id": f"t-{number}", "replica": "r1", "engine": "vllm", "model": "m", "outcome": "ok"}
        usual |= {"started_at": started_at, "ended_at": started_at + timedelta(seconds=2), "flags": []}
        said = {key: "span" for key in row if key.endswith(("_tokens", "_s", "_bytes", "_usage", "_steps", "_position"))}
        provenance = said | row.get("provenance", {})
        pairs = [{"key": key, "value": value} for key, value in provenance.items()]
        whole.append(dict.fromkeys(columns) | usual | dict(row) | {"provenance": pairs})
    return pl.DataFrame(whole, schema=columns)


def series(signal: str, grows: float, observed: int | None = None, **labels: str) -> dict[str, Any]:
    """A counter (a histogram where `observed` is given) that grows evenly by `grows` over five minutes, sampled each 15 s."""
    return {"signal": signal, "grows": grows, "observed": observed, "labels": labels}


def samples(of: Sequence[Mapping[str, Any]], replica: str = "r1", engine: str = "vllm", steps: int = 20) -> pl.DataFrame:
    """The samples of series of one replica."""
    rows = []
    for one in of:
        labels = [{"key": key, "value": value} for key, value in one["labels"].items()]
        for step in range(steps + 1):
            row = {"observed_at": T0 + WINDOW * step / steps, "replica": replica, "name": f"{engine}:{one['signal']}", "labels": labels}
            row |= {"signal": one["signal"], "engine": engine, "sender": "scrape", "received_at": T0}
            row |= {"value": 1e6 + one["grows"] * step / steps, "kind": "counter" if one["observed"] is None else "histogram"}
            row["total"] = None if one["observed"] is None else 500 + one["observed"] * step // steps
            rows.append(dict.fromkeys(schema("samples_hot")) | row)
    return pl.DataFrame(rows, schema=schema("samples_hot"))
