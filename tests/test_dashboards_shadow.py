"""What policies in shadow say is marked by a word wherever the page shows it, and is nobody's alarm."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import polars as pl
from dashboards_rows import NOW

from dashboards import flips, segment_table, unjudged
from dashboards.choice import KEYS, choice
from dashboards.headline import headline
from dashboards.segment_table import METRICS, Row
from pipeline.segments import canonical

KEY = {**dict.fromkeys(KEYS), "model": "m"}


def _rows(*said: tuple[str, str, bool]) -> list[Row]:
    """The row of one segment, of which policies say a verdict in a state, in shadow or not."""
    empty = {f"{name}{end}": None for name in METRICS for end in ("", "_n", "_coverage", "_provenance")}
    told = [
        {"segment": canonical(KEY), "verdict": verdict, "reason_code": "harm", "reason": "so", "action": "hold"}
        | {"state": state, "state_since": NOW, "is_shadow": is_shadow}
        for verdict, state, is_shadow in said
    ]
    return segment_table.rows([{**KEY, **empty, "requests": 10}], told, [], {canonical(KEY): unjudged.UNKNOWN}, choice({}, NOW), NOW)


class Reader:
    """A reader of one flip."""

    def frame(self, *_: Any) -> pl.DataFrame:
        row = {"flip_id": "f", "policy": "p", "lever": "speculation", "segment": '{"model":"m"}', "state_before": "on", "reason": "so"}
        row |= {"state_after": "off_recommended", "decided_at": NOW, "notice": json.dumps({}), "receiver": None, "is_shadow": True}  # type: ignore[dict-item]
        return pl.DataFrame([row])


def test_a_segment_s_badge_says_that_its_policy_is_in_shadow() -> None:
    [row] = _rows(("disable", "off_recommended", True))
    assert (row.verdict.words, row.verdict.css, row.verdict.is_shadow) == ("stopped paying, in shadow", "quiet", True)


def test_the_headline_alarms_nobody_of_what_is_in_shadow_and_says_it() -> None:
    said = headline(_rows(("disable", "off_recommended", True)))
    assert (said.css, said.stopped) == ("warn", [])
    assert said.text == "In shadow, told to nobody: stopped paying in 1 segment."
    assert headline(_rows(("conflicted", "on", True))).css == "good"


def test_a_policy_in_shadow_hides_nothing_that_another_one_says() -> None:
    [row] = _rows(("disable", "off_recommended", True), ("keep", "on", False))
    assert (row.verdict.name, row.verdict.is_shadow) == ("keep", False)


def test_a_flip_of_a_policy_in_shadow_says_so() -> None:
    [flip] = flips.newest(Reader(), NOW)  # type: ignore[arg-type]
    assert (flip.is_shadow, flip.css) == (True, "quiet")
    page = (resources.files("dashboards") / "templates" / "segment.html").read_text(encoding="utf-8")
    assert "{% if flip.is_shadow %}" in page
    assert "nobody is told" in page
