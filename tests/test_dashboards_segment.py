"""The segment page over a small store: what it says is what the reader says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import dashboards_rows
import polars as pl
import pytest
from dashboards_rows import FLEETS, HOSTILE, NOTICE, NOW, Fleet, StoreReader

from dashboards import flips, notice_evidence, segment_charts, standing
from dashboards.arriving import Arriving
from dashboards.charts import Period
from dashboards.choice import choice
from dashboards.notice_steps import steps
from dashboards.page import Asked
from dashboards.pages import segment
from dashboards.segment_charts import BLOCK
from dashboards.segment_table import METRICS
from dashboards.studio import Studio
from pipeline.segments import JUDGING_KEYS, canonical
from queries import cells_rolled
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
def reader(page_store: Store) -> StoreReader:
    return StoreReader(page_store)


@pytest.fixture(scope="module")
def html(reader: StoreReader, studio: Studio) -> str:
    return segment.draw(Asked(reader, {}, NOW, studio=studio))


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[StoreReader]:
    store = Store(tmp_path)
    yield StoreReader(store)
    store.close()


@pytest.mark.parametrize("fleet", FLEETS[:4], ids=["keep", "disable", "no control", "frozen"])
def test_every_number_of_the_report_stands_on_the_page(reader: StoreReader, fleet: Fleet) -> None:
    keys = {key: value for key, value in fleet.keys.items() if value}
    values = _Read(segment.draw(Asked(reader, keys, NOW))).values
    by = (*JUDGING_KEYS, "arm.speculation")
    arms = reader.report(by=by, metrics=METRICS, since=NOW - timedelta(hours=24), until=NOW)
    arms = arms.filter(model=fleet.model, input_bucket=fleet.input_bucket).filter(pl.col("arm.speculation").is_not_null())
    whole = reader.report(by=JUDGING_KEYS, metrics=METRICS, since=NOW - timedelta(hours=24), until=NOW)
    whole = whole.filter(model=fleet.model, input_bucket=fleet.input_bucket)
    for row in [*arms.to_dicts(), *whole.to_dicts()]:
        told = [row.get(name, row.get(f"{name}_p50")) for name in METRICS]
        missing = [value for value in told if value is not None and not any(abs(value - shown) <= 1e-9 * abs(value) for shown in values)]
        assert not missing, row


def test_the_newest_effect_stands_on_the_page(reader: StoreReader, html: str) -> None:
    values = _Read(html).values
    shown = FLEETS[1].keys
    (row,) = reader.effects("speculation").filter(segment=canonical(shown), metric="net_itl_s").to_dicts()
    assert {row["value_a"], row["value_b"], row["gain"]} <= set(values)


def test_the_most_urgent_segment_is_drawn_unasked(html: str) -> None:
    text = _Read(html).text
    assert "<h1>llama-3.3-70b · h100 · tp8 · 512-2047 tokens in · temperature 0.8-1.2</h1>" in html
    assert "Speculation: stopped paying" in text
    assert "gain -15 % (-20..-10 %)" in text
    assert "Judged over the last 24 blocks of 5 min, so a change shows after one to two hours." in text


def test_each_column_names_the_time_that_it_is_of(html: str) -> None:
    table = html.split('id="metrics"')[1].split("</table>")[0].replace("\N{NO-BREAK SPACE}", " ")
    heads = [re.sub(r"<[^>]*>", " ", head).split() for head in re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table)]
    assert [" ".join(head) for head in heads] == [
        "Metric",
        "Treated 24 h",
        "Control 24 h",
        "Gain now, 95 % interval 09:00 to 12:00 UTC",
        "All requests 24 h",
    ]
    assert "over 09:00 to 12:00 UTC" in html.split('id="headline"')[1].split("</section>")[0]


def test_the_whole_reason_stands_once_and_short_elsewhere(html: str) -> None:
    shown = re.sub(r"<details.*?</details>", "", html, flags=re.S)
    assert shown.count("gain -15 % (-20..-10 %)") == 1
    assert shown.count("net ITL 27.6 ms against 24 ms in control") == 2
    assert shown.index("gain -15 % (-20..-10 %)") < shown.index('id="metrics"')


@pytest.mark.parametrize(
    ("reason", "first"),
    [
        ("net ITL is worse: evident since 06:15 UTC (a, b); so", "net ITL is worse"),
        (
            "TTFT not compared with control (no control arm: nothing to compare with): so",
            "TTFT not compared with control (no control arm: nothing to compare with)",
        ),
        ("at 06:15 it was 1,000", "at 06:15 it was 1,000"),
        ("", ""),
    ],
)
def test_the_short_form_of_a_reason_is_its_first_clause(reason: str, first: str) -> None:
    assert standing.short(reason) == first


def test_the_chart_dates_a_loss_and_its_flip_as_the_words_do(studio: Studio) -> None:
    effects = [{"until": NOW, "gain": -0.1, "gain_low": -0.2, "gain_high": -0.05, "blocks": 24, "n_a": 5, "n_b": 5, "note": None}]
    period = Period(NOW - timedelta(hours=24), NOW)
    flip, since = NOW - timedelta(hours=2), NOW - timedelta(hours=3)
    gain = segment_charts.figures([], [*effects, {**effects[0], "until": since}], [flip], BLOCK, period, since=since)[0]
    assert gain.drawing is not None
    assert re.findall(r">(flip[^<]*|worse[^<]*)</text>", studio.svg(gain.drawing)) == ["worse since 09:00", "flip 10:00"]


def test_the_url_chooses_the_segment_and_the_period(reader: StoreReader) -> None:
    keys = {key: value for key, value in FLEETS[2].keys.items() if value}
    html = segment.draw(Asked(reader, {**keys, "since": "6h"}, NOW))
    assert "<h1>qwen3-32b · h200 · tp4 · 2048-8191 tokens in · temperature 0.3-0.8</h1>" in html
    assert 'aria-current="true">6h</a>' in html
    assert "no data: no engine puts draft acceptance on its span; a response tap brings it" in html
    assert "No data: no control arm." in html
    assert "of any temperature: requests without an arm are not kept apart by it" in html


def test_a_segment_without_control_is_not_called_thin(reader: StoreReader) -> None:
    html = segment.draw(Asked(reader, {"model": "qwen3-32b"}, NOW))
    assert "no control arm" in html
    assert "too little data" not in html


def test_a_segment_that_nothing_is_known_of_says_so(empty: StoreReader) -> None:
    text = _Read(segment.draw(Asked(empty, {"model": "nope"}, NOW))).text
    assert "No request of this segment began in this period." in text
    assert "the time is not on the span" not in text


def test_every_chart_has_words_numbers_a_question_and_files(html: str) -> None:
    drawn = html.count("<svg")
    assert html.count('role="img" aria-label="') == drawn == html.count("<summary>Numbers</summary>") == 8
    assert html.count(" download ") == 3 * drawn
    assert html.count('<a href="sql?sql=') >= drawn


def test_charts_read_what_the_requests_say(reader: StoreReader) -> None:
    drawn = {figure.key: figure for figure in segment.figures(Asked(reader, {}, NOW))}
    whole = {"since": NOW - timedelta(hours=24), "until": NOW - timedelta(minutes=30)}  # the period ends some seconds before NOW
    counted = "select count(*) from requests where started_at >= $since and started_at < $until and model = 'llama-3.3-70b' "
    assert drawn["requests"].n == reader.frame(counted + "and input_bucket = '512-2047'", whole).item()
    assert drawn["gain"].coverage == 1.0
    told = reader.frame(
        "select arms['speculation'] as arm, quantile_cont(ttft_s, 0.95) as p95 from requests where started_at >= $since "
        "and started_at < $until and model = 'llama-3.3-70b' and input_bucket = '512-2047' group by all",
        {"since": NOW - timedelta(hours=6), "until": NOW - timedelta(hours=5.5)},
    ).filter(arm="treated")
    values = drawn["ttft"].values
    assert values is not None
    shown = values.filter(pl.col("from") == NOW - timedelta(hours=6))
    assert abs(shown["p95"].item() / told["p95"].item() - 1) < 0.08


def test_a_long_period_reads_hours_that_were_summed_up_and_blocks_that_were_not(tmp_path: Path) -> None:
    store = Store(tmp_path)
    dashboards_rows.fill(store)
    before = segment.figures(Asked(StoreReader(store), {"since": "7d"}, NOW))
    while cells_rolled.roll_next(store, NOW - timedelta(hours=3)):
        pass
    rolled = store.frame("select count(*) as n from cell_periods where tier = 'hour' and state <> 'open'").item()
    after = segment.figures(Asked(StoreReader(store), {"since": "7d"}, NOW))
    store.close()
    assert rolled > 10
    assert [figure.numbers for figure in after] == [figure.numbers for figure in before]


def test_a_hostile_model_name_is_text_everywhere(reader: StoreReader) -> None:
    html = segment.draw(Asked(reader, {"model": HOSTILE, "since": "24h"}, NOW))
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert _Read(html).tags.count("script") == 1
    assert "%3Cscript%3E" in html


def test_an_empty_key_in_the_url_asks_for_requests_where_it_is_unknown() -> None:
    asked = choice({"model": "m", "temperature_bucket": ""}, NOW)
    assert asked.keys == {"model": "m", "temperature_bucket": ""}
    assert asked.segment == '{"model":"m"}'
    assert asked.url() == "segment?model=m&temperature_bucket=&since=24h"


def test_flips_of_another_segment_are_not_marked(reader: StoreReader) -> None:
    recent = flips.newest(reader, NOW)
    assert [flip.flip_id for flip in flips.newest(reader, NOW, "speculation", recent[0].segment)] == ["f2"]
    assert flips.newest(reader, NOW, "speculation", "{}") == []


def test_a_flip_says_why_and_what_to_do(html: str) -> None:
    text = _Read(html).text
    assert html.count("why, and what to do</summary>") == 2
    assert '<details id="why-chosen" class="todo">' in html
    assert "Drain one replica." in text
    assert "restart without --speculative-config" in text
    text = " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).replace("\N{NO-BREAK SPACE}", " ").split())
    assert text.count("Switch off when") == html.count("<h3>Why: the causal chain</h3>")
    assert "decode, memory bandwidth, Time per output token: weights are read" in text
    assert "Switch off when harm, Net ITL gain below 0 % for 3 blocks: a loss" in text
    assert "or failure mode, Time to first token above 1.25 times control for 3 blocks: felt" in text
    assert "select count(*) from requests where model = $model" in text
    assert '"model": "llama-3.3-70b"' in text
    assert 'href="api/flips?flip_id=f2"' in html


def test_what_a_flip_costs_names_the_time_that_it_is_of() -> None:
    impact = {"since": "2026-03-02T09:30:00Z", "until": "2026-03-02T10:50:00Z", "lost_s_per_1k_requests": 7860.0}
    told = notice_evidence.urgency({"impact": impact}).replace("\N{NO-BREAK SPACE}", " ")
    assert told == "From 09:30 to 10:50 UTC: 7.86 s longer each"
    assert notice_evidence.urgency({"impact": None}) == ""


def test_a_lever_that_came_back_is_not_to_be_turned_off() -> None:
    told = steps("f1", NOTICE, "on")
    assert (told.rollback, told.commands) == ([], [])
    assert told.chain


def test_a_period_that_is_none_is_refused_with_what_is_taken(empty: StoreReader) -> None:
    with pytest.raises(ValueError, match="ISO 8601 or an age"):
        segment.draw(Asked(empty, {"since": "yesterday"}, NOW))


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
