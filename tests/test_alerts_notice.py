"""What the notice of a flip holds, as judging writes it: the decision, its evidence, and the query whose sums stand behind it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import polars as pl
from test_alerts_run import BAD, BLOCK, SEGMENT, T0, effects, judge, play

from alerts import sums
from alerts.effects import Effect
from pipeline.metrics import METRICS, in_cells
from queries.store import Store


def requests(store: Store, number: int = 40) -> None:
    arms = ["treated", "control"]
    rows = pl.DataFrame(
        {
            "request_id": [f"r{n}" for n in range(number)],
            "trace_id": [f"{n:032x}" for n in range(number)],
            "model": ["m"] * number,
            "hardware": ["h100"] * number,
            "started_at": [T0 + timedelta(seconds=n) for n in range(number)],
            "ended_at": [T0 + timedelta(seconds=n + 3) for n in range(number)],
            "outcome": ["ok"] * number,
            "output_tokens": [1 if n == 0 else 101 for n in range(number)],
            "decode_s": [0.1 + 0.001 * n for n in range(number)],
            "ttft_s": [0.2] * number,
            "arm": [arms[n % 2] for n in range(number)],
        }
    )
    with store.write() as transaction:
        transaction.using(
            rows,
            "insert into requests_hot by name select * exclude (arm), map {'speculation': 'ngram'} as levers,"
            " case when arm = 'control' then map {'speculation': 'control'} else map {} end as arms,"
            " map {'decode_s': 'span', 'output_tokens': 'body', 'queue_s': 'log'} as provenance from incoming",
        )


def flip_notice(store: Store) -> dict[str, Any]:
    requests(store)
    play(store, [BAD, BAD, BAD])
    notice: dict[str, Any] = json.loads(store.rows("select notice from flips")[0]["notice"])
    return notice


def test_a_notice_holds_all_that_the_design_names(store: Store) -> None:
    notice = flip_notice(store)
    named = "flip_id policy policy_version lever segment verdict action state_before state_after decided_at expires_at reason evidence"
    assert set(f"{named} causal_chain rollback commands query links".split()) <= set(notice)
    assert notice["segment"] == {"hardware": "h100", "model": "m"}
    assert (notice["verdict"], notice["action"], notice["state_after"]) == ("disable", "disable", "off_recommended")
    assert (notice["decided_at"], notice["expires_at"]) == ("2026-03-04T00:15:00Z", "2026-03-05T00:15:00Z")
    assert set(notice["causal_chain"]) >= {"measured_bottleneck", "enabling_condition", "receiving_budget", "expected_benefit"}
    assert {command["engine"] for command in notice["commands"]} == {"vllm", "sglang", "trtllm"}
    assert notice["rollback"]["steps"]
    assert notice["steps"]
    assert notice["how_to"]["silence"].startswith("leverwatch silence add --lever speculation --policy speculation-net-itl --segment ")


def test_evidence_carries_both_arms_the_interval_the_counts_and_where_the_columns_came_from(store: Store) -> None:
    evidence = {row["metric"]: row for row in flip_notice(store)["evidence"]}
    row = evidence["net_itl_s"]
    assert (row["treated"], row["control"], row["interval"]) == (0.031, 0.027, [-0.22, -0.09])
    assert (row["n_treated"], row["n_control"], row["coverage"]) == (4000, 400, 1.0)
    assert row["provenance"] == {"decode_s": "span", "output_tokens": "body"}
    assert evidence["acceptance_length"]["control"] is None


def test_the_query_of_a_notice_gives_the_whole_number_sums_per_block_and_arm(store: Store) -> None:
    query = flip_notice(store)["query"]
    assert query["metric"] == "net_itl_s"
    frame = store.frame(query["sql"], query["params"])
    assert frame.columns == query["columns"]
    rows = {row["arm"]: row for row in frame.to_dicts()}
    assert set(rows) == {"treated", "control"}
    treated = rows["treated"]
    assert (treated["requests"], treated["n"], treated["denominator"]) == (20, 19, 1900)
    assert treated["numerator"] == sum(100_000_000 + 1_000_000 * n for n in range(2, 40, 2))
    assert (treated["ttft_n"], treated["ttft_ns"]) == (20, 4_000_000_000)
    assert treated["block_started_at_s"] == int(T0.timestamp())


def test_the_hash_of_a_notice_is_that_of_the_rows_its_query_gives(store: Store) -> None:
    query = flip_notice(store)["query"]
    assert sums.result_hash(store.frame(query["sql"], query["params"])) == query["result_hash"]
    with store.write() as transaction:
        transaction.execute("update requests_hot set decode_s = decode_s + 1e-9 where request_id = 'r2'")
    assert sums.result_hash(store.frame(query["sql"], query["params"])) != query["result_hash"]


def test_a_segment_that_is_no_set_of_columns_has_no_query(store: Store) -> None:
    for block in (1, 2, 3):
        effects(store, block, BAD, segment='{"other":"9 segments"}')
    judge(store, 3)
    assert json.loads(store.rows("select notice from flips")[0]["notice"])["query"] is None


def test_every_metric_with_an_effect_has_a_query_that_runs(store: Store) -> None:
    requests(store)
    for metric in METRICS:
        if not in_cells(metric) and metric.name != "net_itl_s":
            continue
        row = Effect(metric.name, T0, T0 + BLOCK, 1, 1, 1, None, None, None, None, None, "control", 1.0, None)
        assert sums.ask(store, "speculation", SEGMENT, row) is not None, metric.name
