"""Rows of `effects` for tests that judge a store's history: blocks of one lever's segment, gains as ratios, values in metric units."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import polars as pl
from effect_evidence import evident_row

from alerts.chain import Policy
from alerts.policy import parse, shipped_text
from queries.store import Store

T0 = datetime(2026, 3, 4, tzinfo=UTC)
BLOCK = timedelta(seconds=300)
SEGMENT = '{"hardware":"h100","model":"m"}'
NAME = "speculation-net-itl"
GOOD, BAD, BAND = (0.1, 0.2), (-0.22, -0.09), (0.01, 0.04)


def text(**changes: str) -> str:
    """The shipped policy of speculation, with other values for some of its top-level keys, as TOML text."""
    whole = shipped_text(NAME)
    for key, value in changes.items():
        lines = [line for line in whole.splitlines() if line.startswith(f"{key} = ")]
        whole = whole.replace(lines[0], f"{key} = {value}", 1) if lines else f"{key} = {value}\n{whole}"
    return whole


def policy(**changes: Any) -> Policy:
    """The same, parsed; changes are to fields of the struct."""
    return msgspec.structs.replace(parse(shipped_text(NAME), "speculation.toml"), **changes)


def end(block: int) -> datetime:
    """When a block ends; the first has number 1."""
    return T0 + block * BLOCK


def put(
    store: Store, block: int, gain: tuple[float, float] | None, segment: str = SEGMENT, lever: str = "speculation", **changes: Any
) -> None:
    """What the pipeline appends for one segment when a block closes; without a gain there is no control arm, and a premise alone."""
    common = {"lever": lever, "segment": segment, "arm_a": "treated", "since": end(block) - 24 * BLOCK, "until": end(block)}
    common |= {"blocks": 24, "n_a": 4000, "method": "test", "coverage": 1.0}
    control = common | {"arm_b": "control", "n_b": 400, "basis": "control"}
    alone = common | {"n_b": 0, "basis": "premise"}
    acceptance = alone | {"metric": "acceptance_length", "value_a": 2.4}
    if gain is None:
        rows = [alone | {"metric": "net_itl_s", "basis": "none", "value_a": 0.03, "note": "no control arm"}, acceptance | changes]
    else:
        interval = {"gain": sum(gain) / 2, "gain_low": gain[0], "gain_high": gain[1]}
        rows = [control | interval | {"metric": "net_itl_s", "value_a": 0.031, "value_b": 0.027} | changes, acceptance]
        rows.append(control | {"metric": "ttft_s", "gain": 0.0, "gain_low": -0.02, "gain_high": 0.02})
    with store.write() as transaction:
        transaction.insert("effects", pl.DataFrame([evident_row(row) for row in rows], infer_schema_length=None))


def play(store: Store, gains: Iterable[tuple[float, float] | None], start: int = 1, **more: Any) -> None:
    """Blocks with these gains, one after another."""
    for block, gain in enumerate(gains, start):
        put(store, block, gain, **more)
