"""The page's first sentence: green only where something was measured and nothing is wrong."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import dashboards_rows
import polars as pl
import pytest
from dashboards_rows import FLEETS, NOW, StoreReader

from dashboards import unjudged
from dashboards.headline import Headline, headline
from dashboards.page import Asked
from dashboards.pages import overview
from pipeline import cell_store, measure
from pipeline.segments import JUDGING_KEYS, canonical
from queries.store import Store

DAY_START = NOW - timedelta(hours=24)


def _said(*verdicts: tuple[str, str] | None, state: str = "on", lever: str = "speculation", shadow: bool = False, **marks: Any) -> Headline:
    """A stream per verdict and reason code; none is a segment that is not judged."""
    keys = [{"model": f"m{number}"} for number in range(len(verdicts))]
    told = [
        {"lever": lever, "policy": "p", "segment": canonical(key), "verdict": verdict[0], "reason_code": verdict[1], "reason": "so"}
        | {"action": "hold", "state": state, "state_since": NOW, "shadow": shadow, "benefit": "net_itl_s"}
        | {"gain": None, "gain_low": None, "gain_high": None}
        for key, verdict in zip(keys, verdicts, strict=True)
        if verdict
    ]
    known = {"newest_at": NOW, "judged_until": None, "is_behind": False, **marks}
    waiting = [unjudged.why(canonical(key), lever, **known) for key, verdict in zip(keys, verdicts, strict=True) if not verdict]
    empty = dict.fromkeys(("lever", "policy", "segment", "verdict", "reason_code", "reason", "action", "state", "benefit"), pl.String)
    frame = pl.DataFrame(
        told,
        schema={**empty, "state_since": pl.Datetime("us", "UTC"), "shadow": pl.Boolean, "gain": pl.Float64}
        | {"gain_low": pl.Float64, "gain_high": pl.Float64},
    )
    return headline(frame, [why.short for why in waiting], NOW)


KEEP, BAD, THIN, FROZEN, NO_CONTROL = (
    ("keep", "pays"),
    ("disable", "harm"),
    ("insufficient", "thin"),
    ("frozen", "coverage"),
    ("insufficient", "no_control"),
)


@pytest.mark.parametrize(
    ("verdicts", "css", "title"),
    [
        ((NO_CONTROL,), "quiet", "0 of 1 stream can be judged: no control arm"),
        ((THIN, NO_CONTROL), "quiet", "0 of 2 streams can be judged: too little data: 1, no control arm: 1"),
        ((None,), "quiet", "0 of 1 segment can be judged: its first block is still open"),
        ((KEEP, NO_CONTROL), "good", "No lever has stopped paying: 1 of 2 streams judged"),
        ((KEEP, FROZEN), "warn", "No lever has stopped paying: 1 of 2 streams judged"),
        ((FROZEN,), "warn", "Judging is on hold in 1 of 1 stream"),
        ((FROZEN, THIN), "warn", "Judging is on hold in 1 of 2 streams"),
        ((KEEP, ("conflicted", "both")), "warn", "The measures conflict in 1 of 2 judged streams"),
        ((KEEP, BAD, NO_CONTROL), "bad", "Speculation stopped paying in 1 of 2 segments where it is judged"),
        ((), "quiet", "No segment has been judged yet"),
    ],
)
def test_only_what_was_measured_is_called_well(verdicts: tuple[tuple[str, str] | None, ...], css: str, title: str) -> None:
    said = _said(*verdicts)
    assert (said.css, said.title) == (css, title)


def test_a_lever_recommended_off_is_named_while_it_cannot_be_judged() -> None:
    said = _said(NO_CONTROL, state="off_recommended")
    assert (said.css, len(said.stopped)) == ("bad", 1)


def test_several_levers_are_named_with_how_often_each() -> None:
    streams = pl.DataFrame(
        [
            {
                "lever": lever,
                "policy": "p",
                "segment": segment,
                "verdict": "disable",
                "reason_code": "harm",
                "reason": "so",
                "action": "disable",
            }
            | {"state": "off_recommended", "state_since": NOW, "shadow": False, "benefit": "ttft_s", "gain": -0.1}
            | {"gain_low": None, "gain_high": None}
            for lever, segment in (("prefix_caching", "{}"), ("speculation", "{}"), ("speculation", '{"model":"m"}'))
        ]
    )
    said = headline(streams, [], NOW)
    assert said.title == "2 levers stopped paying: speculation in 2 of 2 segments, prefix caching in 1 of 1 segment"


def test_several_policies_of_a_lever_on_one_segment_are_several_streams_and_one_segment() -> None:
    row = {"lever": "speculation", "segment": "{}", "reason": "so", "state_since": NOW, "shadow": False, "benefit": "ttft_s"}
    row |= {"gain": -0.1, "gain_low": None, "gain_high": None}
    kinds = {"disable": ("disable", "harm", "off_recommended"), "keep": ("keep", "pays", "on")}
    streams = [
        row | {"policy": policy, "verdict": verdict, "reason_code": code, "action": verdict, "state": state}
        for policy, (verdict, code, state) in zip("abc", (kinds["disable"], kinds["disable"], kinds["keep"]), strict=True)
    ]
    assert headline(pl.DataFrame(streams), [], NOW).title == "Speculation stopped paying in 1 of 1 segment where it is judged"
    assert headline(pl.DataFrame(streams[2:]), [], NOW).title == "No lever has stopped paying: 1 of 1 stream judged"


def test_a_shadow_stops_nobody() -> None:
    assert _said(BAD, shadow=True).css == "quiet"


def test_what_is_not_judged_is_said_below() -> None:
    assert _said(BAD, NO_CONTROL).text == "Not judged: 1 stream (no control arm)."
    assert _said(KEEP, NO_CONTROL, None).text == "Not judged: 1 stream (no control arm); 1 segment (its first block is still open)."
    assert "leverwatch.arm.speculation = control" in _said(NO_CONTROL).text


@pytest.mark.parametrize(
    ("marks", "reason"),
    [
        ({"newest_at": None}, "no arm marked: set leverwatch.arm.speculation"),
        ({"newest_at": None, "is_behind": True}, "being measured: what arrived is not worked through yet"),
        ({"judged_until": NOW + timedelta(minutes=5)}, "being judged: history that came late is worked through block by block"),
        ({"judged_until": NOW}, f"its first block is still open. {unjudged.WAITS}"),
    ],
)
def test_a_segment_without_a_verdict_says_what_it_waits_for(marks: dict[str, Any], reason: str) -> None:
    known = {"newest_at": NOW, "judged_until": None, "is_behind": False, **marks}
    assert unjudged.why('{"model":"m"}', "speculation", **known).text == reason


def test_requests_without_any_key_are_told_to_name_their_model() -> None:
    assert unjudged.why("{}", "speculation", NOW, None, is_behind=False).text.endswith("set leverwatch.model")


def test_what_was_measured_or_came_of_late_is_marked(tmp_path: Path) -> None:
    store = Store(tmp_path)
    dashboards_rows.fill(store)
    old, new = canonical({"model": "old"}), canonical({key: FLEETS[-1].keys[key] for key in JUDGING_KEYS})
    with store.write() as transaction:
        transaction.execute("insert into cell_segments (segment_id, segment, model) values (99, $s, 'old')", {"s": old})
        transaction.execute("insert into cell_series values (999, 99, 'speculation', 'treated', null, null, false)")
        requests = "(select metric_id from cell_metrics where metric = 'requests')"
        transaction.execute(f"insert into block_cells values (999, $at, {requests}, 0, 0, 0, 0, 0, 0, 0, 0)", {"at": DAY_START})
        transaction.execute("insert into closed_blocks (until) values ($at)", {"at": DAY_START + timedelta(minutes=5)})
    told = unjudged.whys(StoreReader(store), [old, new, canonical({"model": "none"})], DAY_START, NOW)
    store.close()
    assert [why.short for why in told.values()] == ["being judged", "its first block is still open", "no arm marked"]


def test_the_page_of_unmarked_requests_says_so(tmp_path: Path) -> None:
    store = Store(tmp_path)
    dashboards_rows.fill(store)
    with store.write() as transaction:
        transaction.execute("delete from current_verdicts")
        transaction.execute("update requests_hot set arms = map {}, model = null")
        for table in ("block_cells", "block_histograms", "cell_series", "cell_segments"):
            transaction.execute(f"delete from {table}")
        cell_store.add(transaction, measure.cells(transaction.frame("from requests")))
    html = overview.draw(Asked(StoreReader(store), {}, NOW))
    store.close()
    assert "no arm marked: set leverwatch.arm.&lt;lever&gt;" in html
    assert "set <code>leverwatch.model</code> to name it" in html
    assert 'class="headline quiet"' in html
