"""Verdicts, flips and deliveries with filters, receivers and silences, over HTTP and as one shape of errors."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from notice_rows import HOUR, NOW, Clock, due, emptied, flip, put_in, receiver, tried

from alerts import heartbeat, outbox
from alerts.api import router
from alerts.heartbeat import Beat
from alerts.outbox import Attempt
from leverwatch.error_shape import shape_errors
from queries.store import Store


@pytest.fixture
def store(kept: Store) -> Store:
    return emptied(kept)


REPLAYED = {"receiver": "oncall", "replayed": 0, "superseded": 0, "held_until": None}


class Site:
    """The alerts' routes in this process, on a clock that stands."""

    def __init__(self, store: Store) -> None:
        self.woken, self.clock = 0, Clock()
        self.app = FastAPI()
        shape_errors(self.app)
        self.app.include_router(router(store, self.clock, self._wake, (receiver(), receiver("second"))))

    def _wake(self) -> None:
        self.woken += 1

    def ask(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        async def asked() -> httpx.Response:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://leverwatch") as client:
                return await client.request(method, path, json=body)

        response = asyncio.run(asked())
        assert response.status_code == status, response.text
        return response.json()

    def refused(self, method: str, path: str, status: int, body: Any = None) -> dict[str, str]:
        told = self.ask(method, path, body, status)
        assert set(told) == {"error"}
        assert set(told["error"]) == {"code", "message", "hint"}
        error: dict[str, str] = told["error"]
        return error


@pytest.fixture
def site(store: Store) -> Site:
    return Site(store)


def test_flips_are_filtered_by_what_they_are_and_when(store: Store, site: Site) -> None:
    flip(store, "a", "off_recommended", 30, "shorten")
    flip(store, "b", "on", 2)
    flip(store, "c", "off_recommended", 1, lever="prefix_caching", policy="q")
    found = {
        query: [row["flip_id"] for row in site.ask("GET", f"/api/flips?{query}")]
        for query in (
            "state=on",
            "action=shorten",
            "policy=q",
            "lever=prefix_caching",
            "since=24h",
            "until=2026-03-05T07:30:00Z",
            "limit=1",
        )
    }
    assert found == {
        "state=on": ["b"],
        "action=shorten": ["a"],
        "policy=q": ["c"],
        "lever=prefix_caching": ["c"],
        "since=24h": ["c", "b"],
        "until=2026-03-05T07:30:00Z": ["b", "a"],
        "limit=1": ["c"],
    }


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/api/flips?lever=speculatoin", 400, "did you mean 'speculation'"),
        ("/api/flips?since=yesterday", 400, "time 'yesterday': ISO 8601 or an age"),
        ("/api/flips?state=of", 422, "state: Input should be 'on', 'off_recommended', 'off' or 'probation', got 'of'"),
        ("/api/verdicts?limit=0", 422, "limit: Input should be greater than or equal to 1, got '0'"),
        ("/api/deliveries?outcome=lost", 422, "outcome: Input should be"),
        ("/api/nothing", 404, "GET /api/nothing: Not Found"),
    ],
)
def test_every_refusal_has_one_shape_and_says_what_came(site: Site, path: str, status: int, said: str) -> None:
    assert said in site.refused("GET", path, status)["message"]


def test_deliveries_of_an_outcome_are_the_notices_that_stand_so_now(store: Store, site: Site) -> None:
    flip(store, "a", "off_recommended", 1)
    flip(store, "b", "off_recommended", 1, segment='{"model":"n"}')
    put_in(store)
    tried(store, "failed")
    [first, second] = site.ask("GET", "/api/deliveries?outcome=failed")
    assert site.ask("GET", "/api/deliveries?outcome=delivered") == []
    site.ask("POST", f"/api/deliveries/{first['delivery_id']}/replay", status=202)
    tried(store, "delivered")
    assert [row["webhook_id"] for row in site.ask("GET", "/api/deliveries?outcome=failed")] == [second["webhook_id"]]
    assert [row["outcome"] for row in site.ask("GET", f"/api/deliveries?flip_id={first['flip_id']}")] == ["delivered", "failed"]


def test_what_was_given_up_for_a_receiver_is_sent_again_by_one_call(store: Store, site: Site) -> None:
    flip(store, "a", "off_recommended", 1)
    put_in(store)
    tried(store, "failed")
    assert site.ask("POST", "/api/receivers/oncall/replay", status=202) == REPLAYED | {"replayed": 1}
    assert site.woken == 1
    assert tried(store, "delivered") == ["a"]
    assert "did you mean 'oncall'" in site.refused("POST", "/api/receivers/oncal/replay", 404)["message"]


def test_receivers_say_what_waits_what_was_given_up_and_how_their_heart_beats(store: Store, site: Site) -> None:
    flip(store, "a", "off_recommended", 1)
    put_in(store)
    tried(store, "delivered")
    flip(store, "b", "off_recommended", 1, segment='{"model":"n"}')
    put_in(store)
    heartbeat.keep(store, "oncall", "msg_1", Beat(NOW, NOW, NOW, "failed"), 503, "answered 503")
    first, second = site.ask("GET", "/api/receivers")
    assert first == {
        "receiver": "oncall",
        "kind": "webhook",
        "waiting": 1,
        "given_up": 0,
        "is_stopped": False,
        "delivered_at": "2026-03-05T09:00:00Z",
        "held_until": None,
        "heartbeat_at": "2026-03-05T09:00:00Z",
        "heartbeat_outcome": "failed",
        "heartbeat_error": "answered 503",
    }
    assert (second["receiver"], second["waiting"], second["heartbeat_at"]) == ("second", 0, None)


def test_a_test_notice_waits_for_the_receiver_that_is_asked_for(site: Site) -> None:
    told = site.ask("POST", "/api/receivers/second/test", status=202)
    assert [row["webhook_id"] for row in site.ask("GET", "/api/deliveries?flip_id=test")] == [told["webhook_id"]]
    site.refused("POST", "/api/receivers/third/test", 404)


def test_a_receiver_that_asked_to_wait_is_said_to_wherever_something_waits_for_it(store: Store, site: Site) -> None:
    for name in ("a", "b", "c"):
        flip(store, name, "off_recommended", 1, segment=f'{{"model":"{name}"}}')
    put_in(store)
    [given_up, held, _] = outbox.waiting(store, "oncall", NOW)
    outbox.record(store, given_up, "oncall", Attempt(NOW, NOW, "failed", 500))
    outbox.record(store, held, "oncall", Attempt(NOW, NOW, "retrying", 429, "answered 429", NOW + HOUR, NOW + HOUR))
    until = "2026-03-05T10:00:00Z"
    told = [row["held_until"] for row in site.ask("GET", "/api/receivers")]
    assert told == [until, None]
    [failed] = site.ask("GET", "/api/deliveries?outcome=failed")
    asked = [f"deliveries/{failed['delivery_id']}/replay", "receivers/oncall/replay", "receivers/oncall/test"]
    assert [site.ask("POST", f"/api/{path}", status=202)["held_until"] for path in asked] == [until] * 3
    assert site.ask("POST", "/api/receivers/second/test", status=202)["held_until"] is None
    rows = site.ask("GET", "/api/deliveries?receiver=oncall")
    assert {row["outcome"]: row["held_until"] for row in rows} == {"pending": until, "retrying": until, "failed": None}
    site.clock.forward(3600)
    assert [row["held_until"] for row in site.ask("GET", "/api/receivers")] == [None, None]
    assert {row["held_until"] for row in site.ask("GET", "/api/deliveries?receiver=oncall&outcome=pending")} == {None}


def test_a_silence_begins_is_listed_and_ends(store: Store, site: Site) -> None:
    flip(store, "bad", "off_recommended", 1)
    asked = {"segment": {"model": "m*"}, "for_s": 3600, "created_by": "ana", "comment": "moving racks"}
    begun = site.ask("POST", "/api/silences", asked, 201)
    assert (begun["state"], begun["ends_at"], begun["segment"]) == ("active", "2026-03-05T10:00:00Z", {"model": "m*"})
    assert begun.pop("notes") == []
    assert site.ask("GET", "/api/silences?state=active") == [begun]
    assert site.ask("GET", "/api/silences?state=ended") == []
    assert due(store) == []
    ended = site.ask("DELETE", f"/api/silences/{begun['silence_id'][:6]}")
    assert (ended["state"], ended["ended_at"], site.woken) == ("ended", "2026-03-05T09:00:00Z", 1)
    assert due(store) == ["bad"]
    assert site.refused("DELETE", "/api/silences/nothing", 404)["code"] == "silence_not_found"


def test_a_silence_about_nothing_is_taken_and_says_so(site: Site) -> None:
    begun = site.ask("POST", "/api/silences", {"policy": "nobody", "for_s": 60}, 201)
    assert begun["state"] == "active"
    assert begun["notes"][0].startswith("it is about nothing so far")


def test_a_test_that_failed_is_no_dead_letter(store: Store, site: Site) -> None:
    site.ask("POST", "/api/receivers/oncall/test", status=202)
    tried(store, "failed")
    assert [row["outcome"] for row in site.ask("GET", "/api/deliveries?flip_id=test")] == ["failed"]
    assert [row["outcome"] for row in site.ask("GET", "/api/deliveries?flip_id=test&outcome=failed")] == ["failed"]
    assert site.ask("GET", "/api/deliveries?outcome=failed") == []
    assert site.ask("GET", "/api/receivers")[0]["given_up"] == 0
    assert site.ask("POST", "/api/receivers/oncall/replay", status=202) == REPLAYED


def test_one_flip_is_snoozed(store: Store, site: Site) -> None:
    flip(store, "bad", "off_recommended", 1)
    begun = site.ask("POST", "/api/flips/bad/snooze", {"for_s": 1800}, 201)
    assert (begun["flip_id"], begun["ends_at"], begun["notes"]) == ("bad", "2026-03-05T09:30:00Z", [])
    assert (due(store), due(store, now=NOW + HOUR)) == ([], ["bad"])
    assert site.refused("POST", "/api/flips/nothing/snooze", 404, {"for_s": 60})["code"] == "flip_not_found"


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/api/silences", {"lever": "*", "until": "2026-03-06"}, "unknown field `until`"),
        ("/api/silences", {"lever": "*", "for_s": -1}, "Expected `float` > 0.0 - at `$.for_s`"),
        ("/api/silences", {"receiver": "nobody", "for_s": 60}, "receiver 'nobody' is unknown"),
        ("/api/silences", {"for_s": 60}, "takes lever, policy, segment or receiver"),
        ("/api/silences", None, "the body is not taken"),
        ("/api/flips/bad/snooze", {"for_s": 99e9}, "at most 30 days are taken"),
        ("/api/flips/bad/snooze", {}, "missing required field `for_s`"),
    ],
)
def test_a_body_that_is_not_taken_is_refused_with_the_key(store: Store, site: Site, path: str, body: Any, said: str) -> None:
    flip(store, "bad", "off_recommended", 1)
    assert said in site.refused("POST", path, 400, body)["message"]
    assert site.ask("GET", "/api/silences") == []


@pytest.mark.parametrize("path", ["/api/silences", "/api/flips/bad/snooze"])
def test_a_body_that_is_too_long_is_refused_as_such(store: Store, site: Site, path: str) -> None:
    flip(store, "bad", "off_recommended", 1)
    refused = site.refused("POST", path, 413, {"for_s": 60, "comment": "x" * 70_000})
    assert (refused["code"], refused["message"]) == ("too_large", f"POST {path}: the body is longer than 65,536 bytes")
