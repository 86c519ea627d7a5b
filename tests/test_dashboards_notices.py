"""The page of notices over made-up flips: its numbers are the API's, its words are readable, and nothing of a stranger's runs."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import httpx
import notices_made
import pytest
from dashboards_rows import HOSTILE, NOW, StoreReader
from fastapi import FastAPI
from house_made import MadeHouse

from alerts.api import router
from alerts.receivers import Receiver
from dashboards import notice_evidence, notices_sent, page_list
from dashboards.choice import ChoiceError
from dashboards.page import Asked
from dashboards.pages import notices
from queries.store import Store

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = Store(tmp_path_factory.mktemp("notices"))
    notices_made.add(opened)
    with opened.write() as transaction:
        transaction.execute("insert into watermarks values ('here', $at, $at)", {"at": NOW})
    yield opened
    opened.close()


class Api:
    """The alerts' routes over the store, asked in this process."""

    def __init__(self, store: Store) -> None:
        self._application = FastAPI()
        named = [Receiver(name=name, url="http://127.0.0.1:9/", secret=SECRET) for name in ("oncall", "chat")]
        self._application.include_router(router(store, lambda: NOW, receivers=named))

    def get(self, path: str, params: Mapping[str, str] | None = None) -> Any:
        async def asked() -> httpx.Response:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(self._application), base_url="http://leverwatch") as client:
                return await client.get(path, params=params)

        return asyncio.run(asked()).raise_for_status().json()


@pytest.fixture(scope="module")
def api(store: Store) -> Api:
    return Api(store)


def drawn(store: Store, **query: str) -> str:
    return notices.draw(Asked(StoreReader(store), query, NOW, path="/notices", pages=page_list.found(), house=MadeHouse()))


def test_who_may_only_read_is_offered_nothing_to_do_and_told_why(store: Store) -> None:
    asked = Asked(StoreReader(store), {}, NOW, path="/notices", pages=page_list.found(), house=MadeHouse(), may_change=False)
    page = notices.draw(asked)
    buttons = re.findall(r"<button[^>]*data-path[^>]*>", page)
    assert buttons
    assert all(" disabled " in button and "needs a token that may change something" in button for button in buttons)
    assert "This session may only read" in page
    assert 'id="silence-form"' not in page
    assert " disabled " not in drawn(store)
    assert 'id="silence-form"' in drawn(store)


def flips_of(page: str) -> list[str]:
    return re.findall(r'data-flip="(\w+)"', page)


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


@pytest.mark.parametrize(
    "query", [{}, {"since": "30d"}, {"lever": "speculation", "state": "off_recommended"}, {"since": "30d", "until": "4h"}]
)
def test_the_page_lists_the_flips_that_the_api_lists_for_the_same_question(store: Store, api: Api, query: dict[str, str]) -> None:
    listed = api.get("/api/flips", params={"since": "7d"} | query)
    page = drawn(store, **query)
    assert flips_of(page) == [row["flip_id"] for row in listed]
    assert f'<data value="{len(listed)}">' in page.split('id="flips"')[1]


def test_filters_choose_by_segment_severity_and_an_unknown_key(store: Store) -> None:
    assert flips_of(drawn(store, severity="critical")) == ["f3"]
    assert flips_of(drawn(store, model=HOSTILE)) == ["f3"]
    assert flips_of(drawn(store, temperature_bucket="")) == ["f3"]
    assert flips_of(drawn(store, model="llama-3.3-70b", severity="info")) == ["f5", "f4"]


def test_a_lever_that_changes_the_topology_is_there_for_any_topology(store: Store) -> None:
    assert flips_of(drawn(store, since="30d", topology="tp8", lever="tensor_parallel")) == ["f6"]
    assert flips_of(drawn(store, since="30d", hardware="h100", lever="tensor_parallel")) == []


def test_one_flip_alone_shows_every_attempt_that_the_api_lists(store: Store, api: Api) -> None:
    page = drawn(store, flip="f3", since="1h")
    rows = api.get("/api/deliveries", params={"flip_id": "f3"})
    assert flips_of(page) == ["f3"]
    assert len(re.findall(r"<li value=", page)) == len(rows) == 3
    assert "HTTP 503: busy, at 09:00 UTC" in page
    assert "open><summary>evidence" in page


def test_what_waits_and_what_was_given_up_are_the_api_s_numbers(store: Store, api: Api) -> None:
    page = drawn(store)
    for row in api.get("/api/receivers"):
        cells = page.split(f'data-receiver="{row["receiver"]}"')[1].split("</tr>")[0]
        assert re.findall(r'<data value="(\d+)">', cells) == [str(row["waiting"]), str(row["given_up"])]
    missing = page.split('id="undelivered"')[1].split("</section>")[0]
    failed = api.get("/api/deliveries", params={"outcome": "failed"})
    assert [row["delivery_id"] for row in failed] == ["e2"]
    assert "api/deliveries/e2/replay" in missing.split("</tr>")[1]  # the given up stand first
    assert "<h1>1 notice was given up</h1>" in page


def test_silences_are_the_api_s_and_the_ended_stand_apart(store: Store, api: Api) -> None:
    page = drawn(store)
    listed = api.get("/api/silences", params={"state": "active"})
    assert re.findall(r'data-silence="(\w+)"', page) == [row["silence_id"] for row in listed]
    assert "1 ended within 7 days" in page


def test_a_flip_says_that_a_silence_holds_it_back_and_one_of_another_segment_does_not(store: Store) -> None:
    assert "Silenced until 17:00 UTC" in text_of(drawn(store, flip="f3"))
    assert "Silenced" not in drawn(store, flip="f4")


def test_a_flip_tells_evidence_urgency_and_what_to_do(store: Store) -> None:
    said = text_of(drawn(store, flip="f3")).replace("\N{NO-BREAK SPACE}", " ")
    for words in (
        "84 % of the segment's requests and 6.3 % of all requests; 1,240 requests an hour; 420 ms longer each",
        "vllm; treated on r1, r2",
        "−15 % −20 % to −10 % 27.6 ms/token 24 ms/token 4,120 treated, 1,010 control 36 control",
        "Budget ledger 4 ms saved, 9 ms spent",
        "Shorten the drafts.",
        "decided 3 h ago, stands now",
    ):
        assert words in said


def test_a_shadow_says_that_nobody_is_told_and_until_when_it_stood(store: Store) -> None:
    said = text_of(drawn(store, flip="f4"))
    assert "nobody is told" in said.split("One flip")[1]
    assert "until 09:00 UTC, for 60 min" in said


def test_nothing_yet_is_said_as_such(tmp_path_factory: pytest.TempPathFactory) -> None:
    empty = Store(tmp_path_factory.mktemp("empty"))
    page = notices.draw(Asked(StoreReader(empty), {}, NOW, path="/notices"))
    empty.close()
    for words in (
        "Nothing was sent yet",
        "Nothing yet: no lever has changed",
        "Nothing waits and nothing",
        "No silence lasts",
        "No receiver is configured",
    ):
        assert words in page


def test_script_in_reasons_segments_answers_and_comments_is_text(store: Store) -> None:
    for query in ({}, {"flip": "f3"}, {"model": HOSTILE}):
        page = drawn(store, **query)
        assert "<script>alert" not in page
        assert html.escape(HOSTILE).replace("&#x27;", "&#39;").replace("&quot;", "&#34;") in page


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"state": "of"}, "state 'of' is unknown; did you mean 'off'"),
        ({"severity": "x"}, "known: info, warning, critical"),
        ({"after": "-1"}, "after '-1'"),
        ({"flip": "nope"}, "there is no flip 'nope'"),
        ({"flip": "f" * 99}, "99 characters"),
    ],
)
def test_a_wrong_question_is_refused_in_a_sentence(store: Store, query: dict[str, str], said: str) -> None:
    with pytest.raises(ChoiceError, match=re.escape(said)):
        drawn(store, **query)


@pytest.mark.parametrize("outcome", ["pending", "retrying"])
def test_what_waits_for_a_receiver_that_asked_for_a_pause_is_said_to_go_out_then(outcome: str) -> None:
    row = {"delivery_id": "d", "flip_id": "f", "receiver": "r", "outcome": outcome, "attempt": 1, "status_code": 429, "error": None}
    times = {"started_at": NOW, "ended_at": NOW, "next_attempt_at": NOW}
    said = {held: notices_sent.sent({**row, **times}, NOW, {held: NOW + timedelta(minutes=9)}).upcoming for held in ("r", "another")}
    assert said == {"r": "at 12:09 UTC: the receiver asked for nothing before", "another": "as soon as may be"}


def test_a_receiver_that_asked_for_a_pause_says_so_and_what_waits_for_it_too(store: Store) -> None:
    until = NOW + timedelta(hours=2)
    with store.write() as transaction:
        transaction.execute("update deliveries set held_until = $until where webhook_id = 'w5'", {"until": until})
    page = text_of(drawn(store))
    with store.write() as transaction:
        transaction.execute("update deliveries set held_until = null where webhook_id = 'w5'")
    assert "asked for nothing before 14:00 UTC (Retry-After)" in page
    assert "next at 14:00 UTC: the receiver asked for nothing before" in page


def test_a_notice_that_does_not_say_its_traffic_claims_none() -> None:
    assert notice_evidence.urgency({"impact": None}) == notice_evidence.urgency({}) == notice_evidence.served({"served_by": None}) == ""
    assert notice_evidence.urgency({"impact": {"lost_s_per_1k_requests": -3.0}}) == "no request takes longer meanwhile"
