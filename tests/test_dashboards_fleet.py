"""The fleet page: who stands out beside the others of its pool, numbers as the report has them, one metric of each replica over time."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import dashboards_rows
import polars as pl
import pytest
from dashboards_rows import FLEETS, HOSTILE, NOW, StoreReader

from dashboards import fleet_rows
from dashboards.fleet_outliers import load, outliers
from dashboards.fleet_peers import POOL, Group, groups, unlike
from dashboards.fleet_spread import SPREADS, pools
from dashboards.page import Asked
from dashboards.pages import fleet
from pipeline import cell_store, measure
from queries.store import Store

NAMES = ("hot", "b", HOSTILE, None)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Replicas of one pool of which the first gets half of the requests, and of another that is even; one reads prompts for others."""
    opened = Store(tmp_path_factory.mktemp("data"))
    chance = random.Random(1)
    rows = [row for one in (FLEETS[0], FLEETS[3]) for row in dashboards_rows._requests(one, chance)]
    with opened.write() as transaction:
        table = dashboards_rows._requests_table(transaction.frame("from requests_hot"), rows)
        is_hot = pl.col("model") == FLEETS[0].model
        placed = chance.choices(NAMES, (20, 10, 10, 1), k=len(table))
        even = [f"even-{n % 2}" for n in range(len(table))]
        table = table.with_columns(pl.when(is_hot).then(pl.Series(placed)).otherwise(pl.Series(even)).alias("replica"))
        reader_ = pl.when(is_hot).then(None).otherwise(pl.lit("reads")).cast(pl.String)
        transaction.insert("requests_hot", table.with_columns(reader_.alias("prefill_replica")))
        cell_store.add(transaction, measure.cells(transaction.frame("from requests")))
        transaction.execute("insert into watermarks values ('here', $at, $at)", {"at": NOW - timedelta(seconds=4)})
    yield opened
    opened.close()


def row(replica: str, **parts: Any) -> dict[str, Any]:
    """A replica's row of a report, with nothing odd in it."""
    names = (
        "error_rate",
        "queue_s_p95",
        "skipped_token_ratio",
        "prompt_tokens_per_s",
        "output_tokens_per_s",
        "kv_usage",
        "preemptions_per_1k_requests",
        "interconnect_efficiency",
    )
    return {"replica": replica, "requests": 1000, "error_rate_n": 1000, **dict.fromkeys(names), **parts}


def drawn(store: Store, **query: str) -> str:
    """The page as HTML."""
    return fleet.draw(Asked(StoreReader(store), query, NOW, path="/fleet"))


def test_load_is_held_against_the_mean_with_the_interval_of_a_count() -> None:
    found = load(400, [400, 200, 200, 200])
    assert found is not None
    assert found.of_mean == pytest.approx(1.6)
    assert (round(found.low, 2), round(found.high, 2)) == (1.44, 1.76)
    assert found.is_hot


def test_few_requests_make_nobody_hot_and_one_replica_has_no_peers() -> None:
    few = load(6, [6, 2])
    assert few is not None
    assert not few.is_hot
    assert load(100, [100]) is None


@pytest.mark.parametrize(
    ("mine", "peers", "short"),
    [
        ({"error_rate": 0.05}, {"error_rate": 0.01}, ["errors"]),
        ({"error_rate": 0.012}, {"error_rate": 0.01}, []),
        ({"queue_s_p95": 2.0}, {"queue_s_p95": 0.3}, ["queue"]),
        ({"queue_s_p95": 0.05}, {"queue_s_p95": 0.001}, []),
        ({"skipped_token_ratio": 0.1}, {"skipped_token_ratio": 0.5}, ["cache"]),
        ({"kv_usage": 0.95}, {"kv_usage": 0.95}, ["cache full"]),
        ({"preemptions_per_1k_requests": 12.0}, {}, ["preempts"]),
        ({"interconnect_efficiency": 1.4}, {}, ["data error"]),
        ({"error_rate": 0.05, "requests": 50}, {"error_rate": 0.01}, []),
    ],
)
def test_who_stands_out(mine: dict[str, Any], peers: dict[str, Any], short: list[str]) -> None:
    pool = [row("a", **mine), row("b", **peers), row("c", **peers)]
    assert [one.short for one in outliers(pool[0], pool, None)] == short


def served(*replicas: tuple[str, str | None, str, int], now: Sequence[Mapping[str, Any]] = ()) -> list[Group]:
    """The groups of replicas, each said as (name, model, bucket of its prompts, requests)."""
    place = {"hardware": "h100", "topology": "tp8"}
    rows = [{**row(name), "model": model, "requests": n, **place} for name, model, _, n in replicas]
    by_prompt = [{**one, "input_bucket": bucket} for one, (_, _, bucket, _) in zip(rows, replicas, strict=True)]
    return groups(rows, by_prompt, now)


def named(found: Sequence[Group]) -> list[set[str]]:
    return [{one["replica"] for one in group.rows} for group in found]


def test_replicas_of_one_model_that_serve_prompts_of_other_lengths_are_no_peers() -> None:
    found = served(
        *((f"long-{n}", "chat", "2048-8191", 900) for n in range(3)), *((f"short-{n}", "chat", "512-2047", 500) for n in range(3))
    )
    assert named(found) == [{"long-0", "long-1", "long-2"}, {"short-0", "short-1", "short-2"}]
    assert [one.title for one in found] == [f"chat · h100 · tp8 · prompts of {bucket} tokens" for bucket in ("2048-8191", "512-2047")]
    assert [one.words for one in found] == ["2 peers: too few to be sure"] * 2


def test_a_hot_replica_of_the_same_traffic_stays_among_its_peers() -> None:
    found = served(("hot", "chat", "512-2047", 900), *((f"b-{n}", "chat", "512-2047", 300) for n in range(3)))
    assert [one.words for one in found] == ["3 peers"]
    assert pools(found)[0].spreads == [pytest.approx(2.0), None, None]


def test_replicas_whose_model_is_unknown_are_compared_with_nobody() -> None:
    found = served(("a", None, "512-2047", 900), ("b", None, "512-2047", 100))
    assert [(one.peers, one.words) for one in found] == [(0, "no peer: its model is unknown")] * 2


def test_one_that_answers_prompts_which_others_read_is_no_peer_of_one_that_reads_its_own() -> None:
    heard = [{"replica": name, "answered": 100, "pairs": pairs} for name, pairs in (("decode-0", 98), ("decode-1", 99), ("whole", 0))]
    replicas = [(name, "chat", "512-2047", 500) for name in ("decode-0", "decode-1", "whole", "gone")]
    assert named(served(*replicas, now=heard)) == [{"decode-0", "decode-1", "gone"}, {"whole"}]  # what is gone is as most are


def test_how_unlike_traffic_is_counts_what_lies_in_other_buckets() -> None:
    assert unlike({"a": 75, "b": 25}, {"a": 5, "b": 5}) == pytest.approx(0.25)
    assert (unlike({"a": 1}, {"b": 1}), unlike({}, {"a": 1})) == (1.0, 0.0)


def test_what_is_held_against_fewer_than_three_peers_says_so() -> None:
    said = [outliers(alike[0], alike, None)[0].text for n in (1, 2, 3) if (alike := [row("a", error_rate=0.05), *_peers(n)])]
    ends = ["; it has one peer alone, so this may be chance", "; it has 2 peers alone, so this may be chance", "more)"]
    assert [text.endswith(end) for text, end in zip(said, ends, strict=True)] == [True] * 3


def _peers(n: int) -> list[dict[str, Any]]:
    return [row(f"peer-{place}", error_rate=0.01) for place in range(n)]


def test_the_spread_of_a_group_is_that_of_the_report(store: Store) -> None:
    period = {"since": NOW - timedelta(hours=24), "until": NOW}
    told = StoreReader(store).report(by=POOL, metrics=tuple(SPREADS), **period).filter(pl.col("model") == FLEETS[3].model)
    found = re.search(rf">{FLEETS[3].model}[^<]*</th>(.*?)</tr>", drawn(store).split('id="pools"')[1], re.S)
    assert found
    shown = [float(value) for value in re.findall(r'<data value="([-\d.e]+)"', found[1])]
    assert shown[1:] == pytest.approx([told[name].item() for name in SPREADS if told[name].item() is not None], rel=1e-3)


def test_the_hot_replica_is_said_in_words_and_stands_first(store: Store) -> None:
    page = drawn(store)
    assert "1 of 7 replicas stands out" in page
    assert re.search(r">hot</a>: gets 1\.[3-6]\d times the mean of 3 replicas alike \(1\.\d\d to 1\.\d\d\); it has 2 peers alone", page)
    table = page.split('id="replicas"')[1]
    assert table.index(">hot</a>") < table.index(">even-0</a>")


def test_the_numbers_are_those_of_the_report(store: Store) -> None:
    by = ("replica", *POOL)
    report = StoreReader(store).report(by=by, metrics=fleet_rows.METRICS, since=NOW - timedelta(hours=24), until=NOW)
    shown = [float(value) for value in re.findall(r'<data value="([-\d.e]+)"', drawn(store))]
    told = [value for name in ("requests", "cache_hit_rate", "error_rate") for value in report[name].drop_nulls().to_list()]
    assert told
    assert [value for value in told if not any(abs(value - other) <= 1e-9 * abs(value) for other in shown)] == []


def test_a_replica_that_reads_prompts_for_others_is_there(store: Store) -> None:
    assert re.search(r"reads</a>.*read \d+ prompts for others in the last 10", drawn(store), re.S)


def test_requests_without_a_replica_stand_by_themselves_and_are_no_peer(store: Store) -> None:
    found = re.search(r">no replica named</a>.*?</tr>", drawn(store), re.S)
    assert found
    assert "no peer" in found[0]


def test_a_replica_named_like_a_script_is_text(store: Store) -> None:
    assert "<script>alert" not in drawn(store)


def test_the_history_is_of_the_replica_that_was_asked_for_first(store: Store) -> None:
    figure = fleet.figures(Asked(StoreReader(store), {"replica": "b", "metric": "cache_hit_rate"}, NOW))[0]
    assert figure.values is not None
    assert figure.values.columns[:2] == ["from", "b"]
    whole = store.frame(
        "select avg((cached_tokens > 0)::int) as share from requests where replica = 'b' and started_at >= $a and started_at < $b",
        {"a": NOW - timedelta(hours=6), "b": NOW - timedelta(hours=5, minutes=30)},
    )["share"].item()
    assert figure.values.filter(pl.col("from") == NOW - timedelta(hours=6))["b"].item() == pytest.approx(whole)


def test_a_choice_keeps_to_its_pool(store: Store) -> None:
    page = drawn(store, model=FLEETS[3].model)
    assert ">even-0</a>" in page
    assert ">hot</a>" not in page


def test_a_metric_that_no_cell_has_is_refused_with_those_that_are(store: Store) -> None:
    with pytest.raises(ValueError, match="not kept per replica over time; kept are: requests_per_s"):
        drawn(store, metric="net_itl_gain")
