"""The sums behind a number: an odd request is missing from them and stops none."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from alerts import sums
from alerts.effects import Effect
from pipeline.metrics import METRICS, Metric, in_cells
from queries.store import Store

T0 = datetime(2026, 3, 4, tzinfo=UTC)
SEGMENT = '{"model":"m"}'
COUNTS = (
    "output_tokens", "prompt_tokens", "cached_tokens", "accepted_tokens", "draft_tokens", "verify_steps", "batch_at_admission",
    "kv_transfer_bytes",
)  # fmt: skip
REALS = ("decode_s", "ttft_s", "e2e_s", "queue_s", "kv_transfer_s", "link_peak_bytes_per_s")
MEASURED = [metric for metric in METRICS if in_cells(metric) or metric.name == "net_itl_s"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Four treated requests of one block, with 11 of every count and 2.5 of every real."""
    opened = Store(tmp_path)
    rows = pl.DataFrame({"request_id": ["a", "b", "c", "d"]}).with_columns(
        *(pl.lit(text).alias(name) for name, text in (("trace_id", "t"), ("model", "m"), ("outcome", "ok"))),
        *(pl.lit(T0).alias(name) for name in ("started_at", "ended_at")),
        *(pl.lit(11).alias(name) for name in COUNTS),
        *(pl.lit(2.5).alias(name) for name in REALS),
    )
    with opened.write() as transaction:
        transaction.using(rows, "insert into requests_hot by name select *, map {'speculation': 'treated'} as arms from incoming")
    yield opened
    opened.close()


def asked(store: Store, metric: str) -> tuple[int | None, int | None]:
    effect = Effect(metric, T0, T0 + timedelta(minutes=5), 1, 1, 1, None, None, None, None, None, "control", 1.0, None)
    assert sums.ask(store, "speculation", SEGMENT, effect) is not None
    question = sums.question("speculation", SEGMENT, effect)
    (row,) = store.rows(question.sql, question.params)
    return row["numerator"], row["denominator"]


def change(store: Store, requests: str, count: int, real: float) -> None:
    changes = [*(f"{name} = {count}" for name in COUNTS), *(f"{name} = {real!r}::double" for name in REALS)]
    with store.write() as transaction:
        transaction.execute(f"update requests_hot set {', '.join(changes)} where request_id in ({requests})")


def test_values_beyond_64_bits_are_missing_and_the_other_requests_are_summed(store: Store) -> None:
    assert asked(store, "net_itl_s") == (10_000_000_000, 40)
    change(store, "'b', 'd'", 2**63 - 1, 1e300)
    assert asked(store, "net_itl_s") == (5_000_000_000, 20)
    assert asked(store, "acceptance_length") == (44, 22)


@pytest.mark.parametrize("metric", MEASURED, ids=lambda metric: metric.name)
@pytest.mark.parametrize(("count", "real"), [(2**63 - 1, 1e308), (-(2**63), -1e308), (2**62, 9e9)], ids=["most", "least", "sum"])
def test_no_number_that_a_request_can_hold_stops_the_question_of_a_metric(store: Store, metric: Metric, count: int, real: float) -> None:
    change(store, "'a', 'b', 'c', 'd'", count, real)
    assert len(asked(store, metric.name)) == 2
