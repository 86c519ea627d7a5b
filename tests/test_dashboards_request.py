"""The page of one request: found by either id, its legs in time, every column with its source or why it is missing, spans as text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import dashboards_rows
import pytest
from dashboards_rows import HOSTILE, NOW, StoreReader
from house_made import MadeHouse

from dashboards import drawing_child
from dashboards.page import Asked
from dashboards.pages import request
from dashboards.request_columns import GROUPS, columns
from dashboards.request_spans import LONGEST, spans
from dashboards.waterfall import waterfall
from queries.store import Store

ID, TRACE = "rllama5", f"{5:032x}"
SPAN: dict[str, Any] = {
    "trace_id": TRACE, "span_id": "s1", "parent_span_id": None, "name": "ask", "kind": "server", "started_at": NOW, "ended_at": NOW,
    "duration_s": 1.0, "status": "ok", "status_message": None, "scope": None, "service": None, "replica": "r0", "sender": "here",
    "dialect": "vllm", "role": "engine", "signals": {"queue_s": 0.1, "prefill_s": None}, "levers": {}, "arms": {}, "resource": {},
    "attributes": {}, "events": [], "links": [],
}  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = Store(tmp_path_factory.mktemp("data"))
    dashboards_rows.fill(opened)
    with opened.write() as transaction:
        marked = {"trace": TRACE, "text": HOSTILE, "long": "x" * 5000}
        transaction.execute("update spans_hot set attributes = map {'a.b': $text, 'long': $long} where trace_id = $trace", marked)
    yield opened
    opened.close()


def drawn(store: Store, **query: str) -> str:
    """The page as HTML."""
    return request.draw(Asked(StoreReader(store), query, NOW, path="/request", house=MadeHouse()))


def leg(**parts: Any) -> dict[str, Any]:
    """A request of a prefill and a decode replica."""
    told = dict.fromkeys(("e2e_s", "queue_s", "prefill_s", "kv_transfer_s", "decode_s", "ttft_s", "replica"))
    return {**told, "started_at": NOW, "ended_at": NOW + timedelta(seconds=4), "prefill_replica": "p", "decode_replica": "d", **parts}


@pytest.mark.parametrize("id_", [ID, TRACE, TRACE.upper()])
def test_a_request_is_found_by_its_id_and_by_its_trace(store: Store, id_: str) -> None:
    page = drawn(store, id=id_)
    assert f'value="{id_}"' in page
    assert "Every column" in page


def test_what_is_not_found_says_how_long_it_would_have_stayed(store: Store) -> None:
    page = drawn(store, id="<b>nobody</b>")
    assert "Not found" in page
    assert "Requests stay 90d, spans stay 3d" in page
    assert "<b>nobody" not in page


def test_a_strangers_attributes_are_text_and_long_ones_are_cut(store: Store) -> None:
    page = drawn(store, id=TRACE)
    assert "<script>alert" not in page
    assert "(5,000 characters)" in page
    assert "x" * (LONGEST + 1) not in page


def test_every_column_is_shown_with_its_source_or_with_what_brings_it(store: Store) -> None:
    page = drawn(store, id=ID)
    assert "no data: turn it on in vllm" in page
    assert ">span</td>" in page


def test_each_column_of_requests_stands_in_one_group(store: Store) -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) == set(store.frame("from requests limit 0").columns) - {"provenance"}


def test_a_value_of_twice_the_median_is_marked(store: Store) -> None:
    row = store.frame("from requests where request_id = $id", {"id": ID}).to_dicts()[0]
    found = {one.name: one for listed in columns(row, {"ttft_s": row["ttft_s"] / 2, "e2e_s": row["e2e_s"]}, {}).values() for one in listed}
    assert found["ttft_s"].is_far
    assert not found["e2e_s"].is_far
    assert found["queue_s"].text == "no data"


def test_the_examples_are_the_slowest_the_failed_and_the_median(store: Store) -> None:
    page = drawn(store, model="llama-3.3-70b")
    slowest = store.frame(
        "from requests where model = 'llama-3.3-70b' and started_at >= $since order by e2e_s desc limit 1",
        {"since": NOW - timedelta(hours=1, seconds=3)},
    )["request_id"].item()
    assert slowest in page.split("<h3>Failed</h3>")[0]
    assert "<h3>Nearest to the median</h3>" in page


def test_phases_follow_each_other_and_decoding_ends_with_the_request() -> None:
    told = waterfall(leg(e2e_s=4.0, queue_s=0.5, prefill_s=1.0, kv_transfer_s=0.25, decode_s=2.0, ttft_s=1.9), [])
    assert [(bar.kind, bar.where, bar.start_s) for bar in told.bars] == [
        ("request", "", 0.0), ("queue", "p", 0.0), ("prefill", "p", 0.5), ("transfer", "p → d", 1.5), ("decode", "d", 2.0),
    ]  # fmt: skip
    assert told.left(told.bars[-1]) == 50.0
    assert told.width(told.bars[-1]) == 50.0


def test_a_phase_that_nobody_said_is_not_drawn() -> None:
    assert [bar.kind for bar in waterfall(leg(e2e_s=4.0, decode_s=2.0), []).bars] == ["request", "decode"]


def test_spans_lie_below_their_callers_and_another_clock_is_said() -> None:
    early = NOW - timedelta(milliseconds=500)
    child = SPAN | {"span_id": "s2", "parent_span_id": "s1", "started_at": early, "name": "read"}
    bars = waterfall(leg(e2e_s=4.0), [child, SPAN]).bars[1:]
    assert [(bar.name, bar.depth) for bar in bars] == [("ask (engine, vllm)", 0), ("read (engine, vllm)", 1)]
    assert bars[1].odd == "begins 500\N{NO-BREAK SPACE}ms before its caller: another clock"


def test_spans_that_call_each_other_are_each_told_once() -> None:
    ring = [SPAN | {"span_id": "s1", "parent_span_id": "s2"}, SPAN | {"span_id": "s2", "parent_span_id": "s1"}, SPAN | {"span_id": "s3"}]
    assert {bar.span_id for bar in waterfall(leg(e2e_s=1.0), ring).bars[1:]} == {"s1", "s2", "s3"}


def test_a_span_tells_what_was_read_from_it() -> None:
    assert spans([SPAN])[0].signals == [("queue_s", "0.1")]


def test_the_legs_can_be_taken_away(store: Store) -> None:
    figure = request.figures(Asked(StoreReader(store), {"id": ID}, NOW))[0]
    assert figure.values is not None
    assert figure.values.columns == ["leg", "where", "start_s", "length_s"]
    assert "<svg" in drawing_child.svg(figure.drawing or "")


def test_an_id_of_a_thousand_characters_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="at most 300"):
        drawn(store, id="x" * 1000)
