"""`/metrics`: what its parsers read, which series there are, and that its numbers are those of the report."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import elsewhere_rooms
import pytest
from dashboards_rows import FLEETS, HOSTILE, NOW
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as plain
from prometheus_client.samples import Sample

from leverwatch.core_numbers import OF_SEGMENTS, CoreNumbers
from leverwatch.engine_room import EngineRoom
from leverwatch.prometheus_labels import KEYS, bounded

UNTIL = NOW - timedelta(minutes=5)


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineRoom]:
    with elsewhere_rooms.room(tmp_path_factory.mktemp("data")) as opened:
        yield opened


def found(room: EngineRoom, limit_segments: int = 50) -> dict[str, list[Sample]]:
    families = CoreNumbers(room.store, room.policies, limit_segments).families(NOW)
    return {family.name: family.samples for family in families}


def test_prometheus_and_openmetrics_are_read_by_their_parsers_and_say_the_same(room: EngineRoom) -> None:
    application = elsewhere_rooms.application(room)
    kinds = ("text/plain", "application/openmetrics-text; version=1.0.0")
    texts = [elsewhere_rooms.ask(application, "GET", "/metrics", headers={"accept": kind}) for kind in kinds]
    assert texts[0].headers["content-type"].startswith("text/plain; version=")
    assert texts[1].headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert texts[1].text.endswith("# EOF\n")
    read = [
        {(sample.name, tuple(sample.labels.items())): sample.value for family in families for sample in family.samples}
        for families in (plain(texts[0].text), openmetrics(texts[1].text))
    ]
    changing = ("leverwatch_uptime_seconds", "leverwatch_disk_free_bytes")
    same = [{key: value for key, value in one.items() if key[0] not in changing and not key[0].startswith("process_")} for one in read]
    assert same[0] == same[1]
    assert {"leverwatch_spool_backlog_bytes", "leverwatch_jobs_failing"} <= {name for name, _ in same[0]}
    assert {model for (_, labels) in same[0] for key, model in labels if key == "model"} >= {HOSTILE, "qwen3-32b"}


def test_no_series_is_written_twice(room: EngineRoom) -> None:
    for samples in found(room).values():
        labels = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in samples]
        assert len(set(labels)) == len(labels)


def test_the_numbers_are_those_of_a_report_over_the_same_hour(room: EngineRoom) -> None:
    keys = ("model", "hardware", "topology", "input_bucket")
    report = room.report(by=keys, metrics=list(OF_SEGMENTS), since=UNTIL - timedelta(hours=1), until=UNTIL, source="cells").to_dicts()
    told = found(room)
    for metric, family in OF_SEGMENTS.items():
        shown = {tuple(sample.labels[key] for key in keys): sample.value for sample in told[family]}
        expected = {tuple(row[key] or "" for key in keys): row[metric] for row in report if row[metric] is not None}
        assert shown == pytest.approx(expected)
        shown = {
            tuple(s.labels[key] for key in keys): s.value for s in told["leverwatch_metric_coverage_ratio"] if s.labels["metric"] == metric
        }
        assert shown == pytest.approx({tuple(row[key] or "" for key in keys): row[f"{metric}_coverage"] for row in report})
    requests = {tuple(sample.labels[key] for key in keys): sample.value for sample in told["leverwatch_segment_requests"]}
    assert requests == {tuple(row[key] or "" for key in keys): row["requests"] for row in report}


def test_what_is_unknown_is_absent_and_not_zero(room: EngineRoom) -> None:
    models = {sample.labels["model"] for sample in found(room)["leverwatch_draft_acceptance_ratio"]}
    assert "llama-3.3-70b" in models
    assert "qwen3-32b" not in models


def test_segments_beyond_the_limit_are_added_up_as_other(room: EngineRoom) -> None:
    everything = {
        sample.labels["model"]: sample.value
        for sample in found(room)["leverwatch_segment_requests"]
        if sample.labels["input_bucket"] != "512-2047"
    }
    samples = found(room, 2)["leverwatch_segment_requests"]
    assert len(samples) == 3
    (other,) = (sample for sample in samples if sample.labels["model"] == "other")
    assert other.labels == dict.fromkeys(KEYS, "other")
    assert other.value == sum(everything[model] for model in ("qwen3-32b", "mixtral-8x22b", HOSTILE))
    assert [sample.labels["model"] for sample in found(room, 0)["leverwatch_segment_requests"]] == ["other"]


def test_a_lever_tells_its_state_its_gain_with_the_interval_and_both_arms(room: EngineRoom) -> None:
    told = found(room)
    bad = {key: value or "" for key, value in FLEETS[1].keys.items()} | {"tenant": ""}

    def of_bad(name: str, *labels: str) -> dict[tuple[str, ...], float]:
        return {tuple(s.labels[label] for label in labels): s.value for s in told[name] if s.labels.items() >= bad.items()}

    assert of_bad("leverwatch_lever_state", "lever", "state") == {("speculation", "off_recommended"): 1.0}
    assert of_bad("leverwatch_lever_verdict", "verdict", "action") == {("disable", "disable"): 1.0}
    gain = of_bad("leverwatch_lever_gain_ratio", "metric", "bound")
    assert gain["net_itl_s", "low"] < gain["net_itl_s", "value"] < gain["net_itl_s", "high"] < 0
    assert of_bad("leverwatch_lever_requests", "arm") == {("treated",): 180, ("control",): 60}
    net_itl = of_bad("leverwatch_net_itl_seconds", "arm")
    assert 1 - net_itl["treated",] / net_itl["control",] == pytest.approx(gain["net_itl_s", "value"])
    assert sum(sample.value for sample in told["leverwatch_streams"]) == 4


def test_nothing_is_asked_again_before_a_block_closes(room: EngineRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = CoreNumbers(room.store, room.policies, 50)
    first = numbers.families(NOW)
    monkeypatch.setattr(room.store, "rows", lambda *_: pytest.fail("the store was asked"))
    later = numbers.families(NOW + timedelta(seconds=30))
    assert [family.samples for family in later[1:]] == [family.samples for family in first[1:]]
    assert later[0].samples[0].value - first[0].samples[0].value == 30
    monkeypatch.undo()
    with room.store.write() as transaction:
        transaction.execute("insert into closed_blocks values ($until, true)", {"until": UNTIL + timedelta(minutes=5)})
    assert numbers.families(NOW)[0].samples[0].value == 0


def test_an_empty_store_says_no_age_and_no_segment(tmp_path: Path) -> None:
    with elsewhere_rooms.opened_empty(tmp_path) as empty:
        assert {sample for samples in found(empty).values() for sample in samples} == set()


def test_labels_are_short_printable_and_told_apart() -> None:
    long = ["m" * 200 + end for end in "ab"]
    assert len({bounded(text) for text in (*long, "m" * 100)}) == 3
    assert all(len(bounded(text)) <= 109 for text in long)
    assert bounded("a\nb\x00") != bounded("a\rb\x00")
    assert bounded("a\nb").isprintable()
    assert bounded("plain 7B/é") == "plain 7B/é"
