"""The overview over a small store: which lever pays where, the worst first, and what changed since yesterday."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from dashboards_rows import HOSTILE, NOW, StoreReader

from dashboards import matrix, standing
from dashboards.arriving import Arriving
from dashboards.changes import COVERED, changes
from dashboards.choice import choice
from dashboards.page import Asked
from dashboards.pages import overview
from pipeline.segments import JUDGING_KEYS, canonical
from queries.store import Store

CHOSEN = choice({}, NOW)


@pytest.fixture(scope="module")
def reader(page_store: Store) -> StoreReader:
    return StoreReader(page_store)


@pytest.fixture(scope="module")
def html(reader: StoreReader) -> str:
    return overview.draw(Asked(reader, {}, NOW))


def _text(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html)).replace("\N{NO-BREAK SPACE}", " ")


def test_the_first_thing_said_is_which_lever_stopped_paying_where(html: str) -> None:
    text = _text(html)
    assert "Speculation stopped paying in 1 of 2 segments where it is judged" in text
    assert text.index("stopped paying in") < text.index("Levers by segment")
    assert "gain -15 % (-20..-10 %)" in text
    assert "Not judged: 2 streams (" in text
    assert "Judged over the last 24 blocks of 5 min" in text


def test_the_banner_leads_to_its_notice_to_the_steps_and_to_a_silence(html: str) -> None:
    banner = html.split('id="headline"')[1].split("</section>")[0]
    assert re.findall(r'href="(notices[^"]*)"', banner) == ["notices?flip=f2#what-to-do", "notices?flip=f2", "notices?flip=f2#silence"]
    assert "Off recommended since 07:30 UTC" in _text(banner)
    assert "09:00 to 12:00 UTC" in _text(banner)  # the time that the gain is of


@pytest.mark.parametrize(
    ("ended", "seen", "css", "words"),
    [
        (timedelta(hours=9), timedelta(seconds=5), "quiet", "history is loading, so far up to 03:00 UTC"),
        (timedelta(hours=9), timedelta(minutes=5), "bad", "stale: nothing newer than 03:00 UTC has arrived"),
        (timedelta(minutes=5), timedelta(seconds=5), "warn", "behind: the newest span ended at 11:55 UTC"),
        (timedelta(seconds=5), timedelta(seconds=5), "good", "live: spans end 5 s ago at the newest"),
    ],
)
def test_history_on_its_way_is_no_sender_that_fell_silent(ended: timedelta, seen: timedelta, css: str, words: str) -> None:
    here = Arriving(1, 1, 1, 1, NOW - ended, NOW, NOW - seen)
    assert (here.css, here.words.replace("\N{NO-BREAK SPACE}", " ")) == (css, words)


def test_the_worst_segment_stands_first_then_the_one_with_most_requests(html: str) -> None:
    body = _text(html[html.index("<tbody>") :])
    order = [body.index(words) for words in ("stopped paying", "on hold", "▲ pays", "no control arm", "not judged yet")]
    assert order == sorted(order)


def test_requests_are_those_of_the_report(reader: StoreReader, html: str) -> None:
    shown = [int(n) for n in re.findall(r'data-label="Requests"><data value="(\d+)"', html)]
    report = reader.report(by=JUDGING_KEYS, metrics=(), since=CHOSEN.since, until=NOW)
    assert sorted(shown) == sorted(report["requests"])


def test_each_verdict_leads_to_its_segment_and_lever(html: str) -> None:
    assert 'href="segment?hardware=h100&amp;input_bucket=512-2047&amp;model=llama-3.3-70b' in html
    assert "lever=speculation" in html
    assert 'title="net ITL 27.6 ms' in html


def test_a_hostile_model_name_is_text_everywhere(html: str) -> None:
    assert HOSTILE not in html
    assert "<script>alert" not in html
    assert html.count("<script ") == 1


def test_the_keys_of_the_url_narrow_the_rows(reader: StoreReader) -> None:
    html = overview.draw(Asked(reader, {"model": "qwen3-32b"}, NOW))
    assert "Segments 1 to 1 of 1" in html
    assert "0 of 1 stream can be judged: no control arm" in html


def test_rows_beyond_the_last_say_where_the_first_are(reader: StoreReader) -> None:
    assert "none after number 50" in overview.draw(Asked(reader, {"after": "50"}, NOW))
    with pytest.raises(ValueError, match="number of rows to pass over"):
        overview.draw(Asked(reader, {"after": "x"}, NOW))


def test_an_empty_store_says_what_to_do(tmp_path: Path) -> None:
    store = Store(tmp_path)
    text = _text(overview.draw(Asked(StoreReader(store), {}, NOW)))
    store.close()
    assert "nothing has arrived yet: send OTLP traces to the addresses that leverwatch serve printed" in text
    assert "A block is 5 min of traffic. It is judged once the data is 2 min past its end." in text
    assert "No segment has been judged yet" in text
    assert "No request began in this period." in text


def _streams(*told: dict[str, Any]) -> pl.DataFrame:
    rows: list[dict[str, Any]] = [
        {"policy": "p", "verdict": "keep", "reason_code": "pays", "reason": "so", "action": "keep", "state": "on", "state_since": NOW}
        | {"shadow": False, "benefit": "ttft_s", "gain": 0.1, "gain_low": None, "gain_high": None}
        | dict.fromkeys(JUDGING_KEYS)
        | one
        for one in told
    ]
    keyed = [{**row, "segment": canonical({key: row[key] for key in JUDGING_KEYS})} for row in rows]
    return pl.DataFrame(keyed, schema_overrides=dict.fromkeys(JUDGING_KEYS, pl.String), infer_schema_length=None)


def _traffic(*rows: tuple[str, str | None, int]) -> pl.DataFrame:
    told = [
        {"model": model, "hardware": "h100", "topology": topology, "input_bucket": "<512", "requests": n} for model, topology, n in rows
    ]
    return pl.DataFrame(told, schema_overrides=dict.fromkeys(JUDGING_KEYS, pl.String))


def test_a_lever_that_changes_the_topology_stands_in_the_row_of_each() -> None:
    keys = {"model": "m", "hardware": "h100", "input_bucket": "<512"}
    streams = _streams({"lever": "tensor_parallel", **keys}, {"lever": "prefix_caching", **keys, "topology": "tp4"})
    placed = matrix.matrix(_traffic(("m", "tp4", 9), ("m", "tp8", 7)), streams)
    rows = placed.rows(0, CHOSEN, NOW, {})
    assert [sorted(row.cells) for row in rows] == [["prefix_caching", "tensor_parallel"], ["tensor_parallel"]]
    assert placed.levers == ["prefix_caching", "tensor_parallel"]


def test_a_stream_whose_segment_has_no_traffic_keeps_a_row() -> None:
    streams = _streams({"lever": "tensor_parallel", "model": "gone"}, {"lever": "speculation", "model": "gone", "topology": "tp1"})
    placed = matrix.matrix(_traffic(("m", "tp4", 9)), streams)
    assert placed.total == 2
    assert {row.name: row.requests for row in placed.rows(0, CHOSEN, NOW, {})} == {"m": 9, "gone": 0}


def test_of_several_streams_of_a_lever_the_worst_is_shown_and_a_shadow_last() -> None:
    keys = {"lever": "speculation", "model": "m", "hardware": "h100", "topology": "tp4", "input_bucket": "<512"}
    streams = _streams(
        {**keys, "policy": "a", "gain": 0.3},
        {**keys, "policy": "b", "verdict": "frozen", "reason_code": "coverage", "gain": None},
        {**keys, "policy": "c", "verdict": "disable", "reason_code": "harm", "shadow": True, "gain": -0.5},
    )
    (row,) = matrix.matrix(_traffic(("m", "tp4", 9)), streams).rows(0, CHOSEN, NOW, {})
    assert (row.cells["speculation"].stream.policy, row.cells["speculation"].more, row.css) == ("b", 2, "warn")


def test_ten_thousand_segments_give_one_page_of_rows_and_name_the_rest() -> None:
    many: list[dict[str, Any]] = [
        {"lever": "speculation", "model": f"m{n}", "hardware": "h100", "topology": "tp4", "input_bucket": "<512"} for n in range(10_000)
    ]
    many[7_000] |= {"verdict": "disable", "reason_code": "harm"}
    placed = matrix.matrix(_traffic(*((f"m{n}", "tp4", 10_000 - n) for n in range(10_000))), _streams(*many))
    rows = placed.rows(0, CHOSEN, NOW, {})
    assert (placed.total, len(rows), rows[0].name, rows[1].name) == (10_000, 50, "m7000", "m0")


def test_a_shadow_is_marked_as_such_and_not_urgent() -> None:
    frame = _streams({"lever": "speculation", "verdict": "disable", "reason_code": "harm", "shadow": True})
    assert frame.select(standing.urgency()).item() == 3
    assert not standing.stream(frame.row(0, named=True), NOW).stopped


def _day(*rows: tuple[str, int, float | None]) -> pl.DataFrame:
    told = [
        dict.fromkeys(JUDGING_KEYS) | {"model": model, "requests": n} | {f"{name}_coverage": share for name in COVERED}
        for model, n, share in rows
    ]
    types = {**dict.fromkeys(JUDGING_KEYS, pl.String), **{f"{name}_coverage": pl.Float64 for name in COVERED}}
    return pl.DataFrame(told, schema_overrides=types)


def test_segments_that_came_went_and_lost_their_inputs_are_named() -> None:
    found = changes(_day(("new", 5, 1.0), ("same", 90, 0.4)), _day(("gone", 8, 1.0), ("same", 99, 1.0)), CHOSEN, NOW)
    kinds = [change.kind for change in found.listed]
    assert (kinds.count("new segment"), kinds.count("segment gone"), kinds.count("coverage drop")) == (1, 1, 6)
    assert found.listed[0].text.replace("\N{NO-BREAK SPACE}", " ").endswith("coverage 40 %, the day before 100 %")
    assert "no request in a day, 8 in the day before" in [change.text for change in found.listed]


def test_a_store_that_is_younger_than_a_day_has_nothing_to_compare_with() -> None:
    assert changes(_day(("m", 5, 1.0)), _day(), CHOSEN, NOW).is_new


def test_few_requests_are_no_drop() -> None:
    assert changes(_day(("m", 9, 0.1)), _day(("m", 90, 1.0)), CHOSEN, NOW).listed == []


def test_flips_of_the_last_day_stand_there_with_their_deliveries(html: str) -> None:
    text = _text(html)
    assert "oncall delivered at 07:30 UTC (HTTP 200)" in text
    assert "chat attempt 1 failed: connection refused; next at 07:35 UTC" in text
    assert "sent to nobody" in text
