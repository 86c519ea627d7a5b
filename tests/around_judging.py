"""What tests of the modules around judging put into a store: requests with levers, closed blocks, cells of several phases, flips."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import polars as pl
from lever_cells_rows import put

from alerts.chain import ExpectedBenefit, FailureMode, Harm, MeasuredBottleneck, Policy, PremiseLost, QualityGate, ReceivingBudget
from alerts.policy import shipped
from queries.store import Store

START = datetime(2026, 3, 2, tzinfo=UTC)
BLOCK = timedelta(minutes=5)
SEGMENT = '{"hardware":"h100","input_bucket":"<512","model":"m","topology":"tp4"}'
_PAST = {"unit": "ratio", "for_blocks": 3, "source": "a test"}


def policy(**changes: Any) -> Policy:
    """A policy of speculation whose numbers tests may rely on."""
    whole = next(one for one in shipped() if one.lever == "speculation")
    chain: dict[str, Any] = {
        "name": "speculation-net-itl",
        "measured_bottleneck": MeasuredBottleneck(phase="decode", resource="memory_bandwidth", metric="tpot_s"),
        "receiving_budget": ReceivingBudget(budget="compute", metric="ttft_s"),
        "expected_benefit": ExpectedBenefit(metric="net_itl_gain", minimum_gain=0.0),
        "quality_gate": QualityGate(suite="product", kind="product", max_age_days=30),
        "disable_when": (
            Harm(metric="net_itl_gain", is_="below", threshold=0.0, **_PAST),
            FailureMode(metric="ttft_s", is_="above", relative_to_control=1.25, **_PAST),
            PremiseLost(metric="acceptance_length", is_="below", threshold=1.25, **_PAST),
        ),
        "minimum_blocks": 3,
        "revalidates": ("kv_quantization",),
    }
    return msgspec.structs.replace(whole, **(chain | changes))


def end(block: int) -> datetime:
    """The end of the block with this number; the first has number 0."""
    return START + BLOCK * (block + 1)


def serve(store: Store, block: int, n: int, levers: Mapping[str, str], arms: Mapping[str, str] | None = None, **columns: Any) -> None:
    """Requests of a block, all with the same levers and arms."""
    common = {"trace_id": "t", "outcome": "ok", "model": "m", "hardware": "h100", "topology": "tp4"} | columns
    rows = [
        common
        | {"request_id": f"{block}-{number}-{sorted(levers.items())}", "started_at": START + BLOCK * block + timedelta(seconds=number)}
        for number in range(n)
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.col("started_at").alias("ended_at"))
    maps = {f"m_{name}": json.dumps(dict(value or {})) for name, value in (("levers", levers), ("arms", arms))}
    both = ", ".join(f"${name}::json::map(varchar, varchar) as {name.removeprefix('m_')}" for name in maps)
    with store.write() as transaction:
        transaction.using(frame, f"insert into requests_hot by name select *, {both} from incoming", maps)


def close(store: Store, blocks: Iterable[int]) -> None:
    """Marks blocks as compared."""
    with store.write() as transaction:
        transaction.insert("closed_blocks", pl.DataFrame({"until": [end(block) for block in blocks], "judged": True}))


def cells(
    store: Store, block: int, arm: str, n: int, means: Mapping[str, float], lever: str = "speculation", segment: str = SEGMENT
) -> None:
    """Cells of an arm in a block, put into a store."""
    put(store, cell_rows(block, arm, n, means, lever, segment))


def cell_rows(
    block: int, arm: str, n: int, means: Mapping[str, float], lever: str = "speculation", segment: str = SEGMENT
) -> list[dict[str, object]]:
    """Cells of an arm in a block: of each metric the mean over `n` requests. Many are put at once: each time takes a transaction."""
    rows = [_cell("requests", n, 0.0, 0.0), *(_cell(metric, n, mean * n, float(n)) for metric, mean in means.items())]
    common = {"segment": segment, "lever": lever, "arm": arm, "replica": f"{arm}-0", "block_started_at": START + BLOCK * block}
    return [common | row for row in rows]


def _cell(metric: str, n: int, num: float, den: float) -> dict[str, Any]:
    return {"metric": metric, "n": n, "num": num, "den": den, "num_sq": 0.0, "den_sq": 0.0, "num_den": 0.0}


def flip(store: Store, block: int, before: str, after: str, **columns: Any) -> str:
    """A flip at a block's end; gives its id."""
    row = {"policy": "speculation-net-itl", "lever": "speculation", "segment": SEGMENT, "reason": "why", "action": "disable"}
    row |= {"flip_id": f"{block}-{after}", "state_before": before, "state_after": after, "decided_at": end(block), "shadow": False}
    row |= {"notice": json.dumps({"reason_code": columns.pop("reason_code", "harm")}), "severity": "warning"} | columns
    with store.write() as transaction:
        transaction.insert("flips", pl.DataFrame([row]))
    return str(row["flip_id"])
