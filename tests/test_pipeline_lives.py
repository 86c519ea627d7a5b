"""Concurrency, and a request's part of its replica's and its link's time."""

from __future__ import annotations

import pytest
from pipeline_load_rows import NOBODY, NONE, joined, request, requests

from pipeline import replica_load
from pipeline.segments import Edges


def test_concurrency_counts_the_request_itself_and_those_that_run_when_it_starts() -> None:
    made = requests(request(0, 10), request(5, 6), request(6, 12), request(10, 11), request(0, 99, "other"))
    assert [row["concurrency"] for row in joined(made)] == [1, 2, 2, 2, 1]
    assert joined(made)[1]["concurrency_bucket"] == "2-3"
    assert joined(made)[0]["provenance"] == {"concurrency": "derived"}


def test_requests_around_count_and_are_not_given_back() -> None:
    found = joined(requests(request(5, 6, gpus=1)), around=requests(request(0, 5.5), request(5.75, 9)))
    assert len(found) == 1
    assert found[0]["concurrency"] == 2
    assert found[0]["gpu_s"] == pytest.approx(0.25 + 0.25 + 0.125)


def test_the_time_of_a_replica_is_split_among_its_requests_and_times_its_gpus() -> None:
    found = joined(requests(request(0, 4, gpus=8), request(2, 4, gpus=8), request(9, 10)))
    assert [row["gpu_s"] for row in found] == [pytest.approx(24.0), pytest.approx(8.0), None]
    assert found[0]["provenance"]["gpu_s"] == "derived"
    assert "gpu_s" not in found[2]["provenance"]


def test_a_request_without_a_replica_or_an_end_has_no_concurrency() -> None:
    found = joined(requests(request(0, 4, None, gpus=1), request(2, 2, gpus=1), request(1, 3, gpus=1)))
    assert [row["concurrency"] for row in found] == [None, None, 1]
    assert [row["gpu_s"] for row in found] == [None, None, 2.0]


def test_what_a_request_says_itself_stays() -> None:
    found = joined(requests(request(0, 4, gpus=1, concurrency=7, gpu_s=3.0, concurrency_bucket="4-7")))[0]
    assert (found["concurrency"], found["gpu_s"], found["concurrency_bucket"]) == (7, 3.0, "4-7")
    assert found["provenance"] == {}


def test_a_pair_takes_time_on_the_prefill_replica_first_and_then_on_the_other() -> None:
    pair = {"prefill_replica": "p", "queue_s": 1.0, "prefill_s": 1.0, "gpus": 1}
    found = joined(requests(request(0, 10, "d", **pair), request(0, 2, "p", gpus=1), request(4, 6, "d", gpus=1)))
    assert [row["gpu_s"] for row in found] == [pytest.approx(1.0 + 7.0), pytest.approx(1.0), pytest.approx(1.0)]
    assert [row["concurrency"] for row in found] == [1, 2, 2]


def test_of_a_pair_whose_prefill_has_no_end_the_gpu_time_is_unknown() -> None:
    found = joined(requests(request(0, 10, "d", prefill_replica="p", gpus=1)))[0]
    assert (found["gpu_s"], found["concurrency"]) == (None, 1)


def test_the_time_of_a_link_is_split_among_the_transfers_on_it() -> None:
    pair = {"prefill_replica": "p", "queue_s": 0.0, "prefill_s": 1.0}
    found = joined(
        requests(
            request(0, 10, "d", **pair, kv_transfer_s=2.0),
            request(1, 10, "d", **pair, kv_transfer_s=2.0),
            request(0, 10, "e", **pair, kv_transfer_s=2.0),
            request(0, 10, "d", **pair),
            request(0, 10, "d", kv_transfer_s=2.0),
        )
    )
    assert [row["kv_link_s"] for row in found] == [pytest.approx(1.5), pytest.approx(1.5), pytest.approx(2.0), None, None]
    assert found[0]["provenance"]["kv_link_s"] == "derived"


def test_where_only_some_requests_are_seen_nothing_is_told_of_the_others() -> None:
    made = requests(request(0, 4, gpus=1), request(0, 4, "q", gpus=1), request(0, 4, "q", prefill_replica="r", gpus=1))
    found = replica_load.joined(made, NOBODY, NONE, Edges(), sampled={"r"})
    assert found["concurrency"].to_list() == [None, 2, None]
    assert found["gpu_s"].to_list() == [None, 2.0, None]
