"""Reports added up over columns of parts, held against the same reports by SQL."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from pipeline import tally
from pipeline.fresh import rows as as_stored
from pipeline.metrics import METRICS
from queries import fresh_parts, part_writer, report_chunks
from queries.report_plain import KINDS

BEGAN = datetime(2026, 3, 2, 12, tzinfo=UTC)
PLAIN = [metric.name for metric in METRICS if tally.is_plain(metric)]
WORDS = ["span", "body", "log", "derived", "counter", "sample", "made up"]
TEXTS = {"outcome": ["ok", "error", "aborted"], "replica": ["r1", "r2", "r3"], "model": ["llama", "qwen"], "tenant": ["a", "b", "c"]}


def random_requests(columns: pl.DataFrame, count: int, first: int) -> pl.DataFrame:
    """Requests a second apart, a fifth of whose numbers and a tenth of whose keys are null."""
    rng = np.random.default_rng(first)
    made: dict[str, pl.Series] = {}
    for name, kind in columns.schema.items():
        null = pl.Series(rng.random(count) < (0.2 if kind.is_numeric() else 0.1))
        if kind.is_numeric():
            values = pl.Series(rng.integers(0, 9, count) if kind.is_integer() else rng.lognormal(size=count)).cast(kind)
        elif name in TEXTS:
            values, null = pl.Series(rng.choice(TEXTS[name], count)), null & (name != "outcome")
        elif name == "accepted_by_position":
            values = pl.Series([rng.integers(0, 9, rng.integers(0, 4)).tolist() for _ in range(count)], dtype=kind)
        else:
            continue
        made[name] = pl.select(pl.when(~null).then(values)).to_series()
    said = [[{"key": name, "value": str(rng.choice(WORDS))} for name in made if rng.random() < 0.9] for _ in range(count)]
    began = [BEGAN + timedelta(seconds=first + place) for place in range(count)]
    frame = pl.DataFrame(made).with_columns(
        pl.Series("request_id", [f"r{first + place}" for place in range(count)]), pl.lit("t").alias("trace_id"),
        pl.Series("started_at", began, pl.Datetime("us", "UTC")), pl.Series("ended_at", began, pl.Datetime("us", "UTC")),
        pl.Series("provenance", said), pl.lit(True).alias("is_settled"),
    )  # fmt: skip
    lacking = [pl.lit(None, kind).alias(name) for name, kind in columns.schema.items() if name not in frame.columns]
    return frame.with_columns(lacking).select(columns.columns)


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineRoom]:
    """Three parts of 900 requests in small row groups, and 200 hot ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fresh_parts, "MIN_ROWS", 500)
        patch.setattr(part_writer, "ROWS_A_GROUP", 250)
        opened = EngineRoom(tmp_path_factory.mktemp("tally"), Config())
        for number, count in enumerate((900, 900, 900, 200)):
            with opened.store.write() as transaction:
                columns = transaction.frame("select * from requests_hot limit 0")
                rows = as_stored(random_requests(columns, count, number * 900))
                fresh_parts.add(opened.store, transaction, "requests", rows)
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "MIN_ROWS", 1)
    monkeypatch.setattr(report_chunks, "ROWS", 400)


def both(room: EngineRoom, monkeypatch: pytest.MonkeyPatch, **asked: object) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The report added up over columns, and by SQL."""
    period = {name: asked.get(name) for name in ("since", "until")}
    names = [str(name) for name in asked.get("by", [])]  # type: ignore[attr-defined]
    metrics = [metric for metric in METRICS if metric.name in asked["metrics"]]  # type: ignore[operator]
    with room.store.snapshot() as seen:
        assert tally.counted(room.store, seen, metrics, names, **period) is not None  # type: ignore[arg-type]
    found = room.report(**asked)  # type: ignore[arg-type]
    monkeypatch.setattr(tally, "MIN_ROWS", 1 << 62)
    return found, room.report(**asked)  # type: ignore[arg-type]


def test_every_metric_of_one_pass_is_answered_but_what_prices_are_joined_for() -> None:
    of_one_pass = {metric.name for metric in METRICS if metric.kind in KINDS and metric.kind != "label"}
    assert of_one_pass - set(PLAIN) == {"cost_per_million_output_tokens_usd", "cost_per_million_tokens_usd"}  # prices are joined


@pytest.mark.parametrize("by", [[], ["model"], ["model", "tenant", "replica", "outcome"]], ids=len)
def test_every_metric_is_what_sql_says(room: EngineRoom, by: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found, expected = both(room, monkeypatch, by=by, metrics=PLAIN)
    assert found["requests"].sum() == 2900
    assert_frame_equal(found, expected, rel_tol=1e-9, abs_tol=0)


@pytest.mark.parametrize(("since_s", "until_s"), [(100, 1300), (None, 901), (2650, None), (2699, 2750), (899, 900)])
def test_a_period_is_cut_where_it_ends(room: EngineRoom, since_s: int | None, until_s: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {"since": since_s, "until": until_s}
    period = {name: None if after is None else BEGAN + timedelta(seconds=after) for name, after in ends.items()}
    found, expected = both(room, monkeypatch, by=["tenant"], metrics=["ttft_s", "tpot_s", "skipped_token_ratio"], **period)
    assert found["requests"].sum() == (until_s or 2900) - (since_s or 0)
    assert_frame_equal(found, expected, rel_tol=1e-9, abs_tol=0)


@pytest.mark.parametrize(
    "asked",
    [{"by": ["hour"]}, {"by": ["gpus"]}, {"metrics": ["ttft_s", "requests_per_s"]}, {"metrics": ["bottleneck"]}],
    ids=lambda asked: str(*asked.values()),
)
def test_what_columns_do_not_answer_is_left_to_sql(room: EngineRoom, asked: dict[str, list[str]]) -> None:
    metrics = [metric for metric in METRICS if metric.name in asked.get("metrics", ["ttft_s"])]
    with room.store.snapshot() as seen:
        assert tally.counted(room.store, seen, metrics, asked.get("by", []), None, None) is None
    assert room.report(by=asked.get("by", []), metrics=asked.get("metrics", ["ttft_s"]))["requests"].sum() == 2900


@pytest.mark.parametrize(("limits", "name"), [(report_chunks, "MOST_TEXTS"), (tally.tally_chunk, "MOST_CODES"), (tally, "MOST_SEGMENTS")])
def test_too_many_keys_are_left_to_sql(room: EngineRoom, limits: object, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = room.report(by=["tenant"], metrics=["ttft_s"])
    monkeypatch.setattr(limits, name, 1)
    metrics = [metric for metric in METRICS if metric.name == "ttft_s"]
    with room.store.snapshot() as seen:
        assert tally.counted(room.store, seen, metrics, ["tenant"], None, None) is None
    assert_frame_equal(room.report(by=["tenant"], metrics=["ttft_s"]), expected)


def test_percentiles_of_too_many_values_are_left_to_sql(room: EngineRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "MOST_VALUES", 2700)
    metrics = {metric.name: metric for metric in METRICS}
    with room.store.snapshot() as seen:
        assert tally.counted(room.store, seen, [metrics["ttft_s"]], [], None, None) is not None
        assert tally.counted(room.store, seen, [metrics["ttft_s"], metrics["tpot_s"]], [], None, None) is None


def test_a_period_without_requests_is_left_to_sql(room: EngineRoom) -> None:
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    assert room.report(metrics=["ttft_s"], until=long_ago).rows() == [(0, None, None, None, 0, None, None)]


def test_parts_without_digits_are_left_to_sql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh_parts, "MIN_ROWS", 1)
    monkeypatch.setattr(part_writer, "with_digits", lambda rows: rows)
    opened = EngineRoom(tmp_path, Config())
    with opened.store.write() as transaction:
        columns = transaction.frame("select * from requests_hot limit 0")
        fresh_parts.add(opened.store, transaction, "requests", as_stored(random_requests(columns, 50, 0)))
    metrics = [metric for metric in METRICS if metric.name == "ttft_s"]
    with opened.store.snapshot() as seen:
        assert tally.counted(opened.store, seen, metrics, [], None, None) is None
    assert opened.report(metrics=["ttft_s"])["requests"].item() == 50
    opened.close()
