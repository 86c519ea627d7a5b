"""What tests of who is told share: effects of speculation put into a store, blocks that are judged, and what a receiver got of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import polars as pl
from effect_evidence import evident_row

from alerts import outbox
from alerts.chain import Policy
from alerts.notice_types import type_of
from alerts.outbox import Attempt
from alerts.policy import shipped
from alerts.receivers import Receiver
from alerts.run import run
from queries.store import Store

START = datetime(2026, 3, 4, tzinfo=UTC)
BLOCK = timedelta(seconds=300)
SEGMENT = '{"hardware":"h100","model":"m"}'
POLICY = next(policy for policy in shipped() if policy.lever == "speculation")
SHADOW = msgspec.structs.replace(POLICY, shadow=True)
GOOD, BAD = (0.1, 0.2), (-0.22, -0.09)


def at(block: int) -> datetime:
    """The end of the block with this number."""
    return START + block * BLOCK


def effects(store: Store, block: int, gain: tuple[float, float], segment: str = SEGMENT, **changes: Any) -> None:
    """The rows that the pipeline appends for one segment when a block closes; `changes` are of the benefit's."""
    common = {"lever": "speculation", "segment": segment, "arm_a": "treated", "since": at(block) - 24 * BLOCK, "until": at(block)}
    common |= {"blocks": 24, "n_a": 4000, "n_b": 400, "method": "test", "coverage": 1.0, "arm_b": "control", "basis": "control"}
    rows = [
        common
        | {"metric": "net_itl_s", "value_a": 0.031, "value_b": 0.027, "gain": sum(gain) / 2, "gain_low": gain[0], "gain_high": gain[1]},
        common | {"metric": "ttft_s", "value_a": 0.2, "value_b": 0.2, "gain": 0.0, "gain_low": -0.02, "gain_high": 0.02},
    ]
    with store.write() as transaction:
        transaction.insert("effects", pl.DataFrame([evident_row(rows[0]) | changes, evident_row(rows[1])], infer_schema_length=None))


def judge(store: Store, block: int, *policies: Policy, **asked: Any) -> int:
    return run(store, policies or (POLICY,), at(block), at(block), **asked)


def play(store: Store, blocks: range, gain: tuple[float, float], *policies: Policy) -> None:
    """Blocks with this gain, each judged once it has closed."""
    for block in blocks:
        effects(store, block, gain)
        judge(store, block, *policies)


def told(store: Store, to: Receiver | None = None, name: str = "oncall") -> list[tuple[str, str]]:
    """Hands over what is due, delivers it; gives each notice's type and reason code, oldest first."""
    newest = store.rows("select max(until) as mark from effects")[0]["mark"]
    outbox.put_in(store, to or Receiver(name=name, url="http://127.0.0.1:9/hook", secret="whsec_c2VjcmV0"), newest, newest, caught_up=True)
    items = outbox.waiting(store, name, newest)
    for item in items:
        outbox.record(store, item, name, Attempt(newest, newest, "delivered", 204))
    said = []
    for item in items:
        [row] = store.rows(
            "select state_after, action, json_extract_string(notice, '$.reason_code') as code from flips where flip_id = $id",
            {"id": item.flip_id},
        )
        said.append((type_of(row["state_after"], row["action"]), row["code"]))
    return said


def stream(store: Store) -> dict[str, Any]:
    """The only stream's row in `current_verdicts`."""
    [row] = store.rows("select * from current_verdicts")
    return row
