"""What each kind of metric is in a report, worked out by hand of few requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from pipeline.fresh import rows as as_stored
from pipeline.metrics import METRICS
from queries import fresh_parts, report_sources

BEGAN = datetime(2026, 3, 2, 12, tzinfo=UTC)
PAIRS = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))
FAR = BEGAN + timedelta(hours=1)


@pytest.fixture(params=["hot", "parts"])
def room(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineRoom]:
    """A data folder; what is stored there stays in the hot table, or becomes a part."""
    monkeypatch.setattr(fresh_parts, "MIN_ROWS", 1 if request.param == "parts" else 10_000)
    opened = EngineRoom(tmp_path, Config())
    yield opened
    opened.close()


def store(room: EngineRoom, requests: Sequence[Mapping[str, Any]]) -> None:
    """Stores requests: `at_s` seconds after `BEGAN`, a second long but for `e2e_s`; maps as dicts."""
    table = []
    for number, given in enumerate(requests):
        row = dict(given)
        began = BEGAN + timedelta(seconds=row.pop("at_s", 0))
        maps = {name: [{"key": k, "value": v} for k, v in row.pop(name, {}).items()] for name in ("levers", "arms", "provenance")}
        fixed = {"request_id": f"r{number}", "trace_id": f"t{number}", "started_at": began, "outcome": row.pop("outcome", "ok")}
        table.append({**row, **maps, **fixed, "ended_at": began + timedelta(seconds=row.get("e2e_s", 1.0)), "is_settled": True})
    moments = dict.fromkeys(("started_at", "ended_at"), pl.Datetime("us", "UTC"))
    schema = {name: pl.Int64 for row in requests for name, value in row.items() if isinstance(value, int) and name != "at_s"}
    frame = pl.DataFrame(table, schema_overrides={**schema, **moments, **dict.fromkeys(("levers", "arms", "provenance"), PAIRS)})
    with room.store.write() as transaction:
        columns = transaction.frame("select * from requests_hot limit 0")
        lacking = [pl.lit(None, columns.schema[name]).alias(name) for name in columns.columns if name not in frame.columns]
        fresh_parts.add(room.store, transaction, "requests", as_stored(frame.with_columns(lacking).select(columns.columns)))


def sample(room: EngineRoom, *windows: tuple[str, int, int, int, str]) -> None:
    """Rows of `sampling`: replica, minutes after `BEGAN`, spans, counted, state."""
    rows = [
        {
            "replica": replica,
            "window_started_at": BEGAN + timedelta(minutes=minutes),
            "window_s": 300.0,
            "spans": spans,
            "counted": counted,
            "fraction": min(1.0, spans / counted),
            "weight": {"whole": 1.0, "sampled": counted / max(spans, 1)}.get(state),
            "state": state,
            "basis": "counter",
        }
        for replica, minutes, spans, counted, state in windows
    ]
    with room.store.write() as transaction:
        transaction.insert("sampling", pl.DataFrame(rows, schema_overrides={"weight": pl.Float64}))


def test_a_rate_is_per_second_of_what_is_stored_in_the_period(room: EngineRoom) -> None:
    store(room, [{"at_s": 0, "output_tokens": 60}, {"at_s": 99, "output_tokens": 40}])
    row = room.report(metrics=["output_tokens_per_s", "requests_per_s"]).row(0, named=True)
    assert (row["output_tokens_per_s"], row["requests_per_s"]) == (1.0, 0.02)  # from the first start to the last end: 100 s
    assert (row["output_tokens_per_s_n"], row["output_tokens_per_s_totals"]) == (2, "unchecked")
    cut = room.report(metrics=["output_tokens_per_s"], since=BEGAN - timedelta(days=9), until=BEGAN + timedelta(seconds=50))
    assert cut["output_tokens_per_s"].to_list() == [60.0]  # one request, a second long


def test_a_rate_by_hour_is_over_the_part_of_the_period_in_that_hour(room: EngineRoom) -> None:
    store(room, [{"at_s": 3000, "output_tokens": 600}, {"at_s": 3600, "output_tokens": 10}, {"at_s": 3609, "output_tokens": 10}])
    frame = room.report(by=["hour"], metrics=["output_tokens_per_s"])
    assert frame["output_tokens_per_s"].to_list() == [1.0, 2.0]


def test_totals_are_scaled_by_what_sampling_left_out(room: EngineRoom) -> None:
    store(room, [{"at_s": at, "replica": "a"} for at in range(100)] + [{"at_s": at, "replica": "b"} for at in range(100)])
    sample(room, ("a", 0, 100, 1000, "sampled"), ("b", 0, 100, 100, "whole"))
    frame = room.report(by=["replica"], metrics=["requests_per_s"]).sort("replica")
    assert frame["requests_per_s"].to_list() == [10.0, 1.0]
    assert frame["requests_per_s_totals"].to_list() == ["scaled", "whole"]
    assert frame["requests_per_s_n"].to_list() == [100, 100]
    assert room.report(metrics=["requests_per_s"])["requests_per_s"].to_list() == [11.0]


def test_a_rate_is_refused_where_too_few_spans_came(room: EngineRoom) -> None:
    store(room, [{"at_s": at, "replica": "a"} for at in range(100)])
    sample(room, ("a", 0, 100, 100, "whole"), ("a", -5, 0, 50, "few"))
    row = room.report(metrics=["requests_per_s"]).row(0, named=True)
    assert row["requests_per_s_totals"] == "whole"  # the silent window lies before the period
    store(room, [{"at_s": -299, "replica": "a"}])
    row = room.report(metrics=["requests_per_s"]).row(0, named=True)
    assert (row["requests_per_s"], row["requests_per_s_totals"]) == (None, "refused")


def test_a_spread_is_the_most_of_any_replica_over_their_mean(room: EngineRoom) -> None:
    given = {"prompt_tokens": 100, "cached_tokens": 0}
    store(room, [given | {"replica": "a"}] * 3 + [given | {"replica": "b"}, {"replica": "b", "prompt_tokens": 5}, given])
    row = room.report(metrics=["affinity_load_spread", "request_load_spread"]).row(0, named=True)
    assert (row["affinity_load_spread"], row["affinity_load_spread_n"]) == (1.5, 4)
    assert row["affinity_load_spread_coverage"] == 4 / 6
    assert row["request_load_spread"] == 1.2


def test_a_slope_is_that_of_each_replica_about_its_own_means(room: EngineRoom) -> None:
    rows = [{"at_s": at, "replica": name, "queue_depth": depth + at} for name, depth in (("a", 0), ("b", 1000)) for at in range(5)]
    store(room, rows)
    assert room.report(metrics=["prefill_queue_growth"])["prefill_queue_growth"].item() == pytest.approx(1.0, rel=1e-9)


def test_cost_takes_the_price_of_the_hardware_as_of_the_start(room: EngineRoom) -> None:
    given = {"gpu_s": 10.0, "output_tokens": 1000}
    store(room, [given | {"hardware": "h100", "at_s": -60}, given | {"hardware": "h100", "at_s": 60}, given | {"hardware": "odd"}])
    prices = pl.DataFrame({"hardware": ["h100", "h100"], "usd_per_gpu_hour": [3.6, 7.2], "from_time": [None, BEGAN]})
    with room.store.write() as transaction:
        transaction.insert("prices", prices)
    frame = room.report(by=["hardware"], metrics=["cost_per_million_output_tokens_usd"])
    assert frame["cost_per_million_output_tokens_usd"].to_list() == [pytest.approx(1e6 * (0.01 + 0.02) / 2000), None]
    assert frame["cost_per_million_output_tokens_usd_coverage"].to_list() == [1.0, 0.0]
    assert frame["cost_per_million_output_tokens_usd_provenance"].to_list() == [None, None]
    with room.store.write() as transaction:
        transaction.execute("insert into prices values ('', 0.36, null)")
    assert room.report(metrics=["cost_per_million_output_tokens_usd"])["cost_per_million_output_tokens_usd_coverage"].item() == 1.0


def test_parallel_efficiency_is_gpu_time_at_the_least_degree_over_gpu_time_used(room: EngineRoom) -> None:
    given = {"model": "m", "hardware": "h", "input_bucket": "<512", "output_tokens": 11}
    store(
        room,
        [given | {"gpus": 1, "decode_s": 8.0}, given | {"gpus": 4, "decode_s": 4.0}, given | {"gpus": 8, "model": "n", "decode_s": 1.0}],
    )
    frame = room.report(by=["model", "gpus"], metrics=["parallel_efficiency"]).sort("model", "gpus")
    assert frame["parallel_efficiency"].to_list() == [1.0, 0.5, None]  # 0.8 s on one, 0.4 s on four: twice as fast for four times the GPUs
    assert frame["parallel_efficiency_n"].to_list() == [1, 1, 0]
    assert room.report(metrics=["parallel_efficiency"])["parallel_efficiency"].item() == pytest.approx(16 / 24)


def test_the_length_ratio_holds_treated_against_control_in_the_same_block_and_stratum(room: EngineRoom) -> None:
    def served(arm: str, tokens: int, **more: Any) -> dict[str, Any]:
        return {"arms": {"speculation": arm}, "output_tokens": tokens, **more}

    store(
        room,
        [
            served("treated", 300), served("treated", 100), served("control", 100), served("control", 100),
            served("treated", 900, input_bucket=">=32768"),  # nothing to compare with
        ],
    )  # fmt: skip
    row = room.report(metrics=["length_ratio", "net_itl_s"]).row(0, named=True)
    assert (row["length_ratio"], row["length_ratio_n"], row["length_ratio_coverage"]) == (2.0, 2, 2 / 3)
    assert row["length_ratio_provenance"] == "derived"


def test_quality_is_the_setting_s_score_over_the_original_s_by_what_served_each_request(room: EngineRoom) -> None:
    def score(setting: str, value: float, better: str = "higher", suite: str = "s") -> dict[str, Any]:
        fixed = {"evaluated_at": BEGAN, "kind": "product", "model": "m", "evaluation_id": f"{suite}{setting}{value}", "sender": "x"}
        return fixed | {
            "lever": "kv_quantization",
            "suite": suite,
            "setting": setting,
            "score": value,
            "better": better,
            "received_at": BEGAN,
        }

    store(
        room,
        [
            {"model": "m", "levers": {"kv_quantization": "fp8"}},
            {"model": "m", "levers": {}},
            {"model": "n", "levers": {"kv_quantization": "fp8"}},
        ],
    )
    scores = [score("fp8", 0.9), score("original", 1.0), score("fp8", 2.0, "lower", "p"), score("original", 1.4, "lower", "p")]
    with room.store.write() as transaction:
        transaction.insert("evaluations", pl.DataFrame(scores))
    frame = room.report(by=["model"], metrics=["quality"]).sort("model")
    assert frame["quality"].to_list() == [pytest.approx((0.9 + 0.7) / 2), None]
    assert frame["quality_n"].to_list() == [1, 0]
    assert frame["quality_coverage"].to_list() == [0.5, 0.0]


@pytest.mark.parametrize("most_texts", [0, 32])
def test_provenance_is_of_the_requests_that_have_all_inputs(room: EngineRoom, most_texts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_sources, "MOST_TEXTS", most_texts)
    both = {"prompt_tokens": 10, "cached_tokens": 5}
    store(
        room,
        [
            both | {"provenance": {"prompt_tokens": "span", "cached_tokens": "body"}},
            both | {"provenance": {"prompt_tokens": "span", "cached_tokens": "counter"}},
            both | {"provenance": {"cached_tokens": "made up"}},
            {"prompt_tokens": 10, "provenance": {"prompt_tokens": "log"}},
        ],
    )
    frame = room.report(metrics=["skipped_token_ratio", "ttft_s"])
    assert frame["skipped_token_ratio_provenance"].to_list() == ["body+counter+other+span"]
    assert frame["ttft_s_provenance"].to_list() == [None]


def test_the_bottleneck_is_named_with_its_evidence_and_without_what_nobody_asked_for(room: EngineRoom) -> None:
    times = {"e2e_s": 10.0, "queue_s": 0.5, "prefill_s": 1.5, "decode_s": 8.0, "kv_usage": 0.4}
    store(room, [times | {"model": "m"}, {"model": "n", "e2e_s": 3.0}])
    frame = room.report(by=["model"], metrics=["bottleneck"]).sort("model")
    said = ["bottleneck", "bottleneck_n", "bottleneck_coverage", "bottleneck_provenance", "bottleneck_evidence"]
    assert frame.columns == ["model", "requests", *said]
    assert frame["bottleneck"].to_list() == ["decode:memory_bandwidth", "unknown"]
    assert frame["bottleneck_n"].to_list() == [1, 0]
    assert "decode takes 80 % of the time (prefill 15 %, queue 5 %)" in frame["bottleneck_evidence"][0]
    assert "KV usage 0.4" in frame["bottleneck_evidence"][0]
    assert frame["bottleneck_evidence"][1] == "not known without prefill_share and decode_share"


def test_every_metric_can_be_asked_for_at_once_and_with_a_condition(room: EngineRoom) -> None:
    store(room, [{"model": "m", "e2e_s": 2.0, "gpus": 1, "replica": "a"}])
    frame = room.report(by=["model", "hour", "lever.x"], metrics=["all"])
    with_condition = room.report(by=["model", "hour", "lever.x"], metrics=["all"], where="model = 'm'")
    assert frame.rows() == with_condition.rows()
    assert frame.height == 1
    assert {f"{metric.name}_n" for metric in METRICS} <= set(frame.columns)
