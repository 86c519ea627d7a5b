from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import httpx
import msgspec
import polars as pl
import pytest
from effect_evidence import evident_row
from fastapi import FastAPI

from alerts import outbox
from alerts.api import router
from alerts.outbox import Attempt
from alerts.policy import shipped
from alerts.receivers import Receiver
from alerts.run import run
from queries.store import Store

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
RECEIVER = Receiver(name="oncall", url="http://127.0.0.1:9/", secret="whsec_c2VjcmV0")


@pytest.fixture
def woken() -> list[bool]:
    return []


class Client:
    """Asks an app in this process."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app

    def ask(self, method: str, path: str) -> httpx.Response:
        async def asked() -> httpx.Response:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://leverwatch") as client:
                return await client.request(method, path)

        return asyncio.run(asked())


@pytest.fixture
def client(store: Store, woken: list[bool]) -> Client:
    app = FastAPI()
    app.include_router(router(store, lambda: NOW, lambda: woken.append(True)))
    return Client(app)


def judged(store: Store) -> None:
    rows = []
    for minute in (5, 10, 15):
        until = NOW.replace(hour=0, minute=minute)
        row = {"lever": "speculation", "segment": '{"model":"m"}', "metric": "net_itl_s", "arm_a": "treated", "arm_b": "control"}
        row |= {"since": until, "until": until, "blocks": 24, "n_a": 900, "n_b": 900, "value_a": 0.031, "value_b": 0.027}  # type: ignore[dict-item]
        row |= {"gain": -0.15, "gain_low": -0.2, "gain_high": -0.1, "method": "test", "basis": "control", "coverage": 1.0}  # type: ignore[dict-item]
        rows.append(row)
    with store.write() as transaction:
        transaction.insert("effects", pl.DataFrame([evident_row(row) for row in rows]))
    run(store, shipped(), NOW, rows[-1]["until"])  # type: ignore[arg-type]
    outbox.put_in(store, RECEIVER, rows[-1]["until"], NOW, caught_up=True)  # type: ignore[arg-type]


def get(client: Client, path: str) -> Any:
    response = client.ask("GET", path)
    assert response.status_code == 200, response.text
    return response.json()


def test_verdicts_are_the_current_ones_with_the_segment_as_an_object(store: Store, client: Client) -> None:
    judged(store)
    [row] = get(client, "/api/verdicts?lever=speculation")
    assert (row["segment"], row["verdict"], row["state"]) == ({"model": "m"}, "disable", "off_recommended")
    assert row["decided_at"] == "2026-03-04T00:15:00Z"
    assert get(client, "/api/verdicts?lever=pool_ratio") == []


def test_what_a_policy_in_shadow_says_is_marked(store: Store, client: Client) -> None:
    judged(store)
    assert [row["shadow"] for row in get(client, "/api/verdicts")] == [False]
    shadows = [msgspec.structs.replace(policy, shadow=True) for policy in shipped()]
    run(store, shadows, NOW)
    assert [row["shadow"] for row in get(client, "/api/verdicts")] == [True]


def test_a_flip_carries_its_notice(store: Store, client: Client) -> None:
    judged(store)
    [row] = get(client, "/api/flips")
    assert row["notice"]["flip_id"] == row["flip_id"]
    assert get(client, row["notice"]["links"]["flip"]) == [row]
    assert get(client, "/api/flips?flip_id=none") == []


def test_deliveries_show_what_waits(store: Store, client: Client) -> None:
    judged(store)
    [row] = get(client, "/api/deliveries")
    assert (row["receiver"], row["outcome"], row["next_attempt_at"]) == ("oncall", "pending", "2026-03-04T12:00:00Z")
    assert get(client, "/api/deliveries?receiver=other") == []


def test_a_replay_puts_the_same_id_in_again_and_wakes_the_courier(store: Store, client: Client, woken: list[bool]) -> None:
    judged(store)
    [item] = outbox.waiting(store, "oncall")
    outbox.record(store, item, "oncall", Attempt(NOW, NOW, "failed", 500, "answered 500"))
    [failed] = [row for row in get(client, "/api/deliveries") if row["outcome"] == "failed"]
    response = client.ask("POST", f"/api/deliveries/{failed['delivery_id']}/replay")
    assert response.status_code == 202
    assert response.json()["webhook_id"] == failed["webhook_id"]
    assert [waiting.webhook_id for waiting in outbox.waiting(store, "oncall")] == [failed["webhook_id"]]
    assert woken == [True]


def test_a_replay_of_an_unknown_delivery_is_a_404_with_code_message_and_hint(client: Client) -> None:
    response = client.ask("POST", "/api/deliveries/nothing/replay")
    assert response.status_code == 404
    assert set(response.json()["error"]) == {"code", "message", "hint"}
    assert response.json()["error"]["code"] == "delivery_not_found"


def test_verdicts_of_a_policy_that_is_no_longer_used_are_not_current(store: Store, client: Client) -> None:
    judged(store)
    run(store, [], NOW)
    assert get(client, "/api/verdicts") == []
    assert json.loads(store.rows("select notice from flips")[0]["notice"])
