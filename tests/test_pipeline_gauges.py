"""What a request met at its admission, from the levels that time series told."""

from __future__ import annotations

from typing import Any

import pytest
from pipeline_load_rows import joined, request, requests, series

RUNNING = "running_requests"


def one(*samples: Any, **columns: Any) -> dict[str, Any]:
    return joined(requests(request(100, 110, **columns)), *samples)[0]


def test_a_level_is_the_last_one_before_admission_and_its_source_is_said() -> None:
    found = one(series(RUNNING, [(85, 4), (99, 9), (101, 30)]), series("kv_usage", [(85, 0.5)]), series("queue_depth", [(99, 0)]))
    assert (found["batch_at_admission"], found["kv_usage"], found["queue_depth"]) == (9, 0.5, 0)
    assert found["batch_bucket"] == "8-15"
    assert found["provenance"] == {
        "concurrency": "derived", "batch_at_admission": "sample", "kv_usage": "sample", "queue_depth": "sample",
    }  # fmt: skip


def test_a_request_is_admitted_when_it_has_waited() -> None:
    assert one(series(RUNNING, [(99, 4), (104, 9)]), queue_s=5.0)["batch_at_admission"] == 9


def test_an_old_level_says_nothing() -> None:
    found = one(series(RUNNING, [(39, 4)]))
    assert found["batch_at_admission"] is None
    assert "batch_at_admission" not in found["provenance"]


def test_a_request_that_says_it_itself_is_believed() -> None:
    found = one(series(RUNNING, [(99, 4)]), batch_at_admission=2)
    assert found["batch_at_admission"] == 2
    assert "batch_at_admission" not in found["provenance"]


def test_series_of_engine_ranks_add_up_and_ratios_average() -> None:
    ranks = [{"engine": "0"}, {"engine": "1"}]
    found = one(
        *(series(RUNNING, [(99, 3)], labels=rank) for rank in ranks),
        *(series("kv_usage", [(99, number / 2)], labels=rank) for number, rank in enumerate(ranks)),
        *(series("kv_block_tokens", [(99, 16)], labels=rank) for rank in ranks),
    )
    assert (found["batch_at_admission"], found["kv_usage"], found["kv_block_tokens"]) == (6, 0.25, 16)


def test_memory_of_several_gpus_adds_up_beside_an_engine() -> None:
    gpus = [series("gpu_memory_used_bytes", [(98, 10**10)], labels={"gpu": str(number)}, engine="dcgm") for number in range(8)]
    assert one(*gpus, series(RUNNING, [(99, 1)]))["gpu_memory_used_bytes"] == 8 * 10**10


def test_ranks_that_are_scraped_apart_add_up_as_each_last_spoke() -> None:
    first = series(RUNNING, [(90, 3), (99, 4)], labels={"dp": "0"}, sender="scrape:a")
    second = series(RUNNING, [(95, 5)], labels={"dp": "1"}, sender="scrape:b")
    assert one(first, second)["batch_at_admission"] == 9


def test_the_prefill_replica_is_asked_for_its_queue_and_the_other_for_its_cache() -> None:
    samples = [series("queue_depth", [(99, 1)], "d"), series("queue_depth", [(99, 5)], "p"), series("kv_usage", [(99, 0.1)], "d")]
    found = joined(requests(request(100, 110, "d", prefill_replica="p")), *samples, series("kv_usage", [(99, 0.9)], "p"))[0]
    assert (found["queue_depth"], found["kv_usage"]) == (5, 0.1)


def collectives(seconds: range, each_s: float, rank: str) -> list[Any]:
    return [
        series("collective_s", [(second, each_s)], labels={"sn": str(second), "rank": rank}, engine="nccl", name="nccl_collective")
        for second in seconds
    ]


def test_the_part_of_time_in_collectives_is_that_of_a_rank() -> None:
    said = [*collectives(range(30, 101), 0.25, "0"), *collectives(range(30, 101), 0.15, "1")]
    found = one(*said)
    assert found["communication_fraction"] == pytest.approx(0.2, abs=0.01)
    assert found["provenance"]["communication_fraction"] == "sample"


def test_the_last_collective_alone_says_nothing_of_a_part_of_time() -> None:
    found = one(series("collective_s", [(30, 0.2), (60, 0.2), (99, 0.2)], engine="nccl", labels={"rank": "0"}))
    assert found["communication_fraction"] is None


def test_bus_bandwidth_averages_over_ranks() -> None:
    said = [series("collective_bus_bytes_per_s", [(99, rate)], engine="nccl", labels={"rank": str(rate)}) for rate in (1e11, 3e11)]
    assert one(*said)["collective_bus_bytes_per_s"] == pytest.approx(2e11)
