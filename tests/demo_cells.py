"""A scenario and a seed in, what evidence reads of its cells out: played without the wire, and measured as what came over it is.

A frame of cells has one row per lever, segment, metric, arm and block, replicas summed: `block_started_at` and `evidence_families.SUMS`. A
test holds those of both ways equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import polars as pl

from demo.fleet import Event, Fleet
from demo.records import Request
from demo.scenarios.layout import Scenario
from pipeline import measure, metrics, segments, settle
from pipeline.evidence_families import ARMS, FAMILIES, SUMS

BEGAN = datetime(2026, 3, 2, 6, tzinfo=UTC)
BEGAN_NS = int(BEGAN.timestamp()) * 1_000_000_000
HOUR_NS = 3_600_000_000_000
BLOCK = timedelta(seconds=measure.BLOCK_S)
PLAYED_AT_ONCE_HOURS = 6.0
RAW = tuple(dict.fromkeys(raw for family in FAMILIES for raw in family.raw))
_MEASURED = [metric for metric in metrics.METRICS if metric.name in RAW]
_PAIRS = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))
_EDGES = segments.Edges()
_COLUMNS = pl.Schema(
    {
        "started_at": pl.Int64(),
        "ended_at": pl.Int64(),
        "outcome": pl.String(),
        "prompt_tokens": pl.Int64(),
        "output_tokens": pl.Int64(),
        "ttft_s": pl.Float64(),
        "e2e_s": pl.Float64(),
        "decode_s": pl.Float64(),
        "temperature": pl.Float64(),
        "deployment": pl.Int64(),
    }
)
KEYS = ("lever", "segment", "metric", "arm", "block_started_at")


def twin(scenario: Scenario) -> Scenario:
    """The same fleet, whose control serves as treated does: no lever does anything in it."""
    pools = tuple(msgspec.structs.replace(pool, control=pool.serving) if pool.control else pool for pool in scenario.pools)
    return msgspec.structs.replace(scenario, pools=pools)


def cells(scenario: Scenario, seed: int, from_hour: float, until_hour: float) -> pl.DataFrame:
    """The cells of the scenario's hours from the one to before the other, in order of blocks."""
    fleet = Fleet(scenario, BEGAN_NS, seed, from_hour=from_hour)
    parts, hour = [], from_hour
    while hour < until_hour:
        hour = min(hour + PLAYED_AT_ONCE_HOURS, until_hour)
        parts.append(_measured(fleet.until(BEGAN_NS + round(hour * HOUR_NS))))
    return _summed(parts, BEGAN + timedelta(hours=until_hour))


def _measured(events: Iterable[Event]) -> pl.DataFrame:
    requests = [event for event in events if isinstance(event, Request)]
    if not requests:
        return pl.DataFrame()
    return of_arms(measure.cells(_in_time(_assembled(requests)), metrics=_MEASURED))


def of_arms(found: measure.Cells) -> pl.DataFrame:
    """Cells of levers' arms, replicas summed."""
    rows = found.long().filter((pl.col("lever") != measure.ALL_REQUESTS) & pl.col("arm").is_in(ARMS))
    return rows.group_by(KEYS).agg(pl.col(SUMS).sum())


def _summed(parts: Sequence[pl.DataFrame], until: datetime) -> pl.DataFrame:
    together = pl.concat([part for part in parts if not part.is_empty()]).group_by(KEYS).agg(pl.col(SUMS).sum())
    return together.filter(pl.col("block_started_at") + BLOCK <= until).sort("block_started_at", *KEYS[:4])


def _assembled(requests: Sequence[Request]) -> pl.DataFrame:
    """Columns of `requests`, as far as cells read them."""
    numbers: dict[int, int] = {}
    deployments: list[dict[str, Any]] = []
    rows = []
    for one in requests:
        number = numbers.setdefault(id(one.at), len(deployments))
        if number == len(deployments):
            deployments.append(_facts(one, number))
        rows.append(_row(one, number))
    stated = pl.DataFrame(deployments, schema_overrides={"levers": _PAIRS, "arms": _PAIRS, "deployment": pl.Int64})
    frame = pl.DataFrame(rows, schema=_COLUMNS, orient="row").join(stated, on="deployment", maintain_order="left")
    return frame.with_columns(
        pl.col("started_at", "ended_at").cast(pl.Datetime("ns", "UTC")).dt.cast_time_unit("us"),
        segments.bucket("prompt_tokens", _EDGES.input_tokens).alias("input_bucket"),
        segments.temperature_bucket("temperature", _EDGES.temperature).alias("temperature_bucket"),
        (pl.col("decode_s") / (pl.col("output_tokens") - 1)).alias("tpot_s"),
        *(pl.lit(None, pl.String).alias(name) for name in ("tenant", "batch_bucket")),
    )


def _facts(request: Request, number: int) -> dict[str, Any]:
    at = request.at
    maps = {name: [{"key": key, "value": value} for key, value in pairs] for name, pairs in (("levers", at.levers), ("arms", at.arms))}
    return {"deployment": number, "model": at.model, "hardware": at.hardware, "topology": at.topology, "replica": at.replica, **maps}


def _row(one: Request, number: int) -> tuple[Any, ...]:
    return (
        one.started_ns, one.ended_ns, one.outcome, one.prompt_tokens, one.output_tokens, one.ttft_s, one.e2e_s, one.decode_s,
        one.temperature, number,
    )  # fmt: skip


def _in_time(requests: pl.DataFrame) -> pl.DataFrame:
    """Those that had ended when their block was compared: evidence does not go back for others."""
    closed = pl.col("started_at").dt.truncate(f"{measure.BLOCK_S}s") + BLOCK + settle.LAG
    return requests.filter(pl.col("ended_at") <= closed)
