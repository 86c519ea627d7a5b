"""The segment page over a small store: what it says is what the reader says."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import dashboards_rows
import pytest
from dashboards_rows import FLEETS, HOSTILE, NOTICE, NOW, StoreReader

from dashboards import flips
from dashboards.arriving import Arriving
from dashboards.choice import KEYS, choice
from dashboards.notice_steps import steps
from dashboards.pages import segment
from dashboards.segment_table import METRICS
from queries.store import Store


class _Read(HTMLParser):
    """The raw values, the texts and the tags of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.values: list[float] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes a tag."""
        self.tags.append(tag)
        self.values += [float(value) for name, value in attrs if tag == "data" and name == "value" and value]

    def handle_data(self, data: str) -> None:
        """Notes a text."""
        self.text += data.replace("\N{NO-BREAK SPACE}", " ")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreReader]:
    store = Store(tmp_path_factory.mktemp("data"))
    dashboards_rows.fill(store)
    yield StoreReader(store)
    store.close()


@pytest.fixture(scope="module")
def html(reader: StoreReader) -> str:
    return segment.draw(reader, {}, NOW)


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[StoreReader]:
    store = Store(tmp_path)
    yield StoreReader(store)
    store.close()


def test_every_number_of_the_report_stands_on_the_page(reader: StoreReader, html: str) -> None:
    values = _Read(html).values
    report = reader.report(by=KEYS, metrics=METRICS, since=NOW - timedelta(hours=24), until=NOW)
    for row in report.iter_rows(named=True):
        told = [row["requests"], *(row[name] for name in METRICS if row[name] is not None)]
        missing = [value for value in told if not any(abs(value - shown) <= 1e-9 * abs(value) for shown in values)]
        assert not missing, row["model"]


def test_the_first_thing_said_is_where_speculation_stopped_paying(html: str) -> None:
    text = _Read(html).text
    assert "Speculation stopped paying in 1 of 2 judged segments" in text
    assert text.index("stopped paying in") < text.index("Segments")
    assert "gain -15 % (-20..-10 %)" in text


def test_the_worst_segment_stands_first_and_is_drawn_unasked(html: str) -> None:
    body = html[html.index("<tbody>") :]
    order = [body.index(words) for words in ("stopped paying", "on hold", "</span> pays", "no control arm", "not judged yet")]
    assert order[0] < order[1] < order[2]
    assert "<h2>llama-3.3-70b · h100 · tp8 · 512-2047 tokens in · temperature 0.8-1.2</h2>" in html


def test_a_hostile_model_name_is_text_everywhere(reader: StoreReader) -> None:
    html = segment.draw(reader, {"model": HOSTILE, "since": "24h"}, NOW)
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert _Read(html).tags.count("script") == 1
    assert "%3Cscript%3E" in html


def test_the_url_chooses_the_segment_and_the_period(reader: StoreReader) -> None:
    keys = {key: value for key, value in FLEETS[2].keys.items() if value}
    html = segment.draw(reader, {**keys, "since": "6h"}, NOW)
    assert "<h2>qwen3-32b · h200 · tp4 · 2048-8191 tokens in · temperature 0.3-0.8</h2>" in html
    assert 'aria-current="true">6h</a>' in html
    assert "Not available: no engine puts draft acceptance on its span; a response tap brings it." in html
    assert "Not available: no control arm." in html


def test_an_empty_key_in_the_url_asks_for_requests_where_it_is_unknown() -> None:
    asked = choice({"model": "m", "temperature_bucket": ""}, NOW)
    assert asked.keys == {"model": "m", "temperature_bucket": ""}
    assert asked.segment == '{"model":"m"}'
    assert asked.url() == "segment?model=m&temperature_bucket=&since=24h"


def test_every_chart_has_words_and_numbers_beside_it(html: str) -> None:
    assert html.count('role="img" aria-label="') == html.count("<svg") == html.count("<summary>Numbers</summary>") == 6


def test_a_flip_shows_what_was_sent_where_and_how_it_ended(html: str) -> None:
    text = _Read(html).text
    assert "oncall delivered at 07:30 UTC (HTTP 200)" in text
    assert "chat attempt 1 failed: connection refused; next at 07:35 UTC" in text
    assert "sent to nobody" in text


def test_flips_of_another_segment_are_not_marked(reader: StoreReader) -> None:
    recent = flips.newest(reader, NOW)
    assert [flip.flip_id for flip in flips.newest(reader, NOW, "speculation", recent[0].segment)] == ["f2"]
    assert flips.newest(reader, NOW, "speculation", "{}") == []


def test_a_flip_says_why_and_what_to_do(html: str) -> None:
    text = _Read(html).text
    assert html.count("why, and what to do</summary>") == 3
    assert '<details id="why-chosen" class="todo">' in html
    assert "Drain one replica." in text
    assert "restart without --speculative-config" in text
    assert "decode, memory bandwidth, tpot_s: weights are read" in text
    assert "harm, net_itl_gain below 0 for 3 blocks: a loss" in text
    assert "failure mode, ttft_s above 1.25 times control for 3 blocks: felt" in text
    assert "select count(*) from requests where model = $model" in text
    assert '"model": "llama-3.3-70b"' in text
    assert 'href="api/flips?flip_id=f2"' in html


def test_a_lever_that_came_back_is_not_to_be_turned_off() -> None:
    told = steps("f1", NOTICE, "on")
    assert (told.rollback, told.commands) == ([], [])
    assert told.chain


def test_the_mean_of_the_period_does_not_outshout_the_newest_gain(html: str) -> None:
    assert '<span class="small line">24h mean <data value=' in html
    assert "gain over 24h" not in html


def test_the_page_says_how_long_a_change_takes_and_what_is_counted(html: str) -> None:
    assert "Judged over the last 24 blocks of 5 minutes, so a change shows after one to two hours." in html
    assert "Draft acceptance counts the requests of both arms" in html


def test_a_segment_without_control_is_not_called_thin(html: str) -> None:
    assert '<span class="badge quiet"><span aria-hidden="true">○</span> no control arm</span>' in html
    assert "too little data" not in html


def test_an_empty_store_says_what_to_do(empty: StoreReader) -> None:
    text = _Read(segment.draw(empty, {}, NOW)).text
    assert "nothing has arrived yet: send OTLP traces to the addresses that leverwatch serve printed" in text
    assert "A block is 5 minutes of traffic. It is judged once the data is 2 minutes past its end." in text
    assert "the time is not on the span" not in text
    assert "No segment has been judged yet" in text
    assert "No request began in this period." in text


def test_a_period_that_is_none_is_refused_with_what_is_taken(empty: StoreReader) -> None:
    with pytest.raises(ValueError, match="ISO 8601 or an age"):
        segment.draw(empty, {"since": "yesterday"}, NOW)


@pytest.mark.parametrize(
    ("age", "css", "words"),
    [
        (timedelta(seconds=4), "good", "live: spans end 4 s ago at the newest"),
        (timedelta(minutes=5), "warn", "behind: the newest span ended at 11:55 UTC"),
        (timedelta(hours=5), "bad", "stale: nothing newer than 07:00 UTC has arrived"),
    ],
)
def test_the_age_of_the_data_is_said_in_words(age: timedelta, css: str, words: str) -> None:
    here = Arriving(1, 0, 1, 1, NOW - age, NOW)
    assert (here.css, here.words) == (css, words)


def test_old_data_is_shown_up_to_where_it_ends() -> None:
    ended_at = datetime(2025, 1, 1, tzinfo=UTC)
    assert Arriving(1, 0, 1, 1, ended_at, NOW).until == ended_at + timedelta(seconds=1)
    assert Arriving(1, 0, 1, 1, NOW + timedelta(hours=1), NOW).until == NOW
