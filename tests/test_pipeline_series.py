"""Which of the series of a replica's signal count."""

from __future__ import annotations

import polars as pl
from pipeline_load_rows import rows_counted, series

KV = "kv_usage"


def levels(*samples: pl.DataFrame) -> list[float]:
    return rows_counted(*samples).sort("observed_at", "value")["value"].to_list()


def test_a_total_counts_and_not_its_parts_beside_it() -> None:
    model = {"model_name": "m"}
    parts = [series("prompt_tokens_total", [(0, 6), (9, 12)], labels=model | {"engine": rank}) for rank in ("0", "1")]
    assert levels(series("prompt_tokens_total", [(0, 12), (9, 24)], labels=model), *parts) == [12, 24]
    assert levels(series("prompt_tokens_total", [(0, 12), (9, 24)]), *parts) == [12, 24]


def test_parts_without_a_total_all_count_whatever_labels_they_have() -> None:
    parts = [series(KV, [(0, 6)], labels={"engine": "0"}), series(KV, [(0, 7)], labels={"engine": "1", "model_name": "m"})]
    assert levels(*parts) == [6, 7]


def test_of_two_names_sent_beside_each_other_one_counts() -> None:
    newer, older = (series(KV, [(0, 0.5), (15, 0.6)], name=f"vllm:{name}_usage_perc") for name in ("kv_cache", "gpu_cache"))
    assert levels(newer, older) == [0.5, 0.6]
    apart = series(KV, [(1, 0.5)], name="vllm:gpu_cache_usage_perc")
    assert levels(newer, apart) == [0.5, 0.6]


def test_a_name_that_changes_with_an_upgrade_counts_before_and_after() -> None:
    older = series(KV, [(0, 0.1), (15, 0.2)], name="vllm:gpu_cache_usage_perc")
    newer = series(KV, [(30, 0.3), (45, 0.4)], name="vllm:kv_cache_usage_perc")
    assert levels(older, newer) == [0.1, 0.2, 0.3, 0.4]


def test_what_is_scraped_and_pushed_counts_once() -> None:
    scraped = series("running_requests", [(0, 5), (15, 6)])
    pushed = series("running_requests", [(3, 5)], labels={"service.name": "vllm"}, sender="10.0.0.9")
    assert levels(scraped, pushed) == [5, 6]


def test_a_frontend_counts_only_where_no_engine_does() -> None:
    frontend = series("running_requests", [(0, 5), (5, 5)], engine="dynamo", name="dynamo_frontend_inflight_requests")
    assert levels(frontend, series("running_requests", [(0, 3)])) == [3]
    assert levels(frontend) == [5, 5]


def test_histograms_and_values_that_are_no_numbers_do_not_count() -> None:
    histogram = series("running_requests", [(0, 5)]).with_columns(pl.lit("histogram").alias("kind"))
    assert levels(histogram, series("running_requests", [(1, float("nan")), (2, float("inf")), (3, 4)])) == [4]
