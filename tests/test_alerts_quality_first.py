"""A breach of quality waits for nobody, and is told once of a recommendation that stands for another reason."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from test_alerts_turns import BLOCK, CACHING, KV, QUALITY, SEGMENT, SPECULATION, T0, TP, due, effects, judged, policy

from alerts.chain import Policy
from alerts.effects import Effect
from alerts.judge import after, judge
from alerts.notice import Flip
from alerts.notice_types import type_of
from alerts.standing import Judgment, Seen, Standing
from alerts.turns import Open

OTHER = Open(CACHING, SEGMENT, T0 - timedelta(hours=1), "disable")


def play(one: Policy, standing: Standing, story: list[dict[str, Effect]]) -> list[Judgment]:
    """What is said of blocks with these effects, one after the other."""
    said = []
    for number, seen in enumerate(story, 1):
        until = T0 + number * BLOCK
        judgment = judge(one, seen, standing, until, QUALITY if "quality" in seen else Seen())
        standing = after(standing, judgment, until)
        said.append(judgment)
    return said


def told(said: list[Judgment]) -> list[tuple[str, str, str]]:
    return [(one.state, one.action, one.reason_code) for one in said if one.is_raised]


def test_quality_does_not_wait_for_a_recommendation_that_stands_and_says_what_else_is_open() -> None:
    [said] = judged(due(SPECULATION, 0.2, quality=-0.1), standing=(OTHER,))
    assert (said.verdict, said.state, said.reason_code) == ("disable", "off_recommended", "quality")
    since = "2026-03-03T23:00:00Z"
    assert said.reason.endswith(
        f"quality waits for nobody; recommended on this traffic too: prefix_caching (disable) since {since} on {SEGMENT}"
    )
    [harmed] = judged(due(SPECULATION, -0.4), standing=(OTHER,))
    assert harmed.verdict == "conflicted"


def test_of_many_others_three_are_named() -> None:
    others = tuple(Open(KV, json.dumps({"model": "m", "topology": "tp4", "tenant": str(n)}), T0, "disable") for n in range(5))
    [said] = judged(due(SPECULATION, 0.2, quality=-0.1), standing=others)
    assert said.reason.endswith("and 2 more") or said.reason.endswith(", 2 more")
    assert said.reason.count("kv_quantization (disable)") == 3


def test_others_wait_for_quality_and_levers_that_do_not_interact_are_not_named() -> None:
    said = judged(due(CACHING, -0.9), due(SPECULATION, 0.2, quality=-0.1), due(TP, -0.5))
    assert [one.verdict for one in said] == ["conflicted", "disable", "disable"]
    assert "waits for nobody" not in said[1].reason


def test_quality_takes_the_lead_of_what_was_counted_or_waited_before() -> None:
    waiting = Standing("on", T0, streak=4, reason_code="harm_waits")
    [said] = judged(due(SPECULATION, -0.4, quality=-0.1, before=waiting), standing=(OTHER,))
    assert (said.state, said.reason_code) == ("off_recommended", "quality")


@pytest.mark.parametrize(
    ("advised", "of_quality", "action"),
    [("disable", "restore_precision", "disable"), ("shorten", "disable", "disable"), ("lower_degree", "lower_degree", "lower_degree")],
)
def test_a_recommendation_is_raised_once_where_quality_breaks_too(advised: Any, of_quality: Any, action: str) -> None:
    harm, quality = SPECULATION.disable_when
    critical = msgspec.structs.replace(quality, severity="critical", action=of_quality)
    one = policy("speculation", disable_when=(msgspec.structs.replace(harm, action=advised), critical), severity="info")
    stands = Standing("off_recommended", T0 - timedelta(hours=3), cause="harm", advised=advised, confirmed_at=T0)
    story = [effects(-0.3), *[effects(-0.3, quality=-0.1)] * 4, effects(-0.3), *[effects(-0.3, quality=-0.1)] * 3]
    said = play(one, stands, story)
    assert told(said) == [("off_recommended", action, "quality")], "never again for the same cause"
    flip = Flip(one, SEGMENT, stands, said[1], T0 + 2 * BLOCK)
    assert (flip.severity, type_of("off_recommended", action)) == ("critical", "lever.disable" if action == "disable" else "lever.adjust")
    assert f"{advised} was advised before" in said[1].reason


def test_quality_stays_the_cause_when_more_is_asked_for_after_it() -> None:
    harm, quality = SPECULATION.disable_when
    mild = msgspec.structs.replace(quality, action="restore_precision")
    one = policy("speculation", disable_when=(harm, mild))
    stands = Standing("off_recommended", T0 - timedelta(hours=3), cause="quality", advised="restore_precision", confirmed_at=T0)
    story = [*[effects(0.2, quality=-0.1)] * 2, *[effects(-0.3)] * 2, *[effects(-0.3, quality=-0.1)] * 4]
    said = play(one, stands, story)
    assert told(said) == [("off_recommended", "disable", "harm")]
    standing = stands
    for number, judgment in enumerate(said, 1):
        standing = after(standing, judgment, T0 + number * BLOCK)
    assert (standing.cause, standing.advised) == ("quality", "disable")


def test_quality_that_takes_several_blocks_is_counted_while_the_recommendation_stands() -> None:
    harm, quality = SPECULATION.disable_when
    one = policy("speculation", disable_when=(harm, msgspec.structs.replace(quality, for_blocks=3)))
    stands = Standing("off_recommended", T0 - timedelta(hours=3), cause="harm", advised="disable", confirmed_at=T0)
    said = play(one, stands, [effects(-0.3, quality=-0.1)] * 5)
    assert [judgment.is_raised for judgment in said] == [False, False, True, False, False]
    assert said[0].reason_code == "quality_pending"
