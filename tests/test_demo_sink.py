"""The webhook sink tells what is signed, once, and refuses the rest."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest
from standardwebhooks import Webhook

from demo.sink import MAX_BODY_BYTES, Sink, summary

SECRET = "whsec_bGV2ZXJ3YXRjaC1kZW1vLXNlY3JldA=="
NOTICE: dict[str, Any] = {
    "type": "lever.disable",
    "timestamp": "2026-03-04T05:06:07Z",
    "data": {
        "flip_id": "f1",
        "lever": "speculation",
        "segment": {"hardware": "h100", "model": "chat-70b"},
        "verdict": "disable",
        "action": "disable",
        "state_before": "on",
        "state_after": "off_recommended",
        "decided_at": "2026-03-04T05:00:00Z",
        "reason": "net ITL 25 ms against 22 ms in control, gain -15 %",
    },
}


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def sink(said: list[str]) -> Iterator[Sink]:
    with Sink(SECRET, said.append) as sink:
        yield sink


def post(url: str, body: str, headers: dict[str, str], method: str = "POST") -> int:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=5)
    try:
        connection.request(method, parts.path, body, headers)
        return connection.getresponse().status
    finally:
        connection.close()


def signed(body: str, webhook_id: str = "msg_1", secret: str = SECRET) -> dict[str, str]:
    now = datetime.now(tz=UTC)
    signature = Webhook(secret).sign(webhook_id, now, body)
    return {"webhook-id": webhook_id, "webhook-timestamp": str(int(now.timestamp())), "webhook-signature": signature}


def test_a_signed_notice_is_taken_and_told_in_a_few_lines(sink: Sink, said: list[str]) -> None:
    body = json.dumps(NOTICE)
    assert post(sink.url, body, signed(body)) == 204
    assert said == [
        "webhook lever.disable speculation hardware=h100 model=chat-70b\n"
        "  verdict disable, action disable, on -> off_recommended, decided at 2026-03-04T05:00:00Z\n"
        "  net ITL 25 ms against 22 ms in control, gain -15 %"
    ]


def test_a_notice_signed_with_another_secret_is_refused(sink: Sink, said: list[str]) -> None:
    body = json.dumps(NOTICE)
    assert post(sink.url, body, signed(body, secret="whsec_c29tZWJvZHkgZWxzZQ==")) == 401
    assert said == ["webhook refused: No matching signature found"]


@pytest.mark.parametrize("lost", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_notice_without_one_of_the_three_headers_is_refused(sink: Sink, said: list[str], lost: str) -> None:
    headers = signed("{}")
    del headers[lost]
    assert post(sink.url, "{}", headers) == 401
    assert said == ["webhook refused: Missing required headers"]


@pytest.mark.parametrize("signature", ["nonsense", "v1,%%%", "v1,a,b"])
def test_a_signature_that_is_no_signature_is_refused(sink: Sink, signature: str) -> None:
    assert post(sink.url, "{}", signed("{}") | {"webhook-signature": signature}) == 401


def test_a_notice_altered_on_its_way_is_refused(sink: Sink) -> None:
    body = json.dumps(NOTICE)
    assert post(sink.url, body.replace("disable", "enable"), signed(body)) == 401


def test_the_same_webhook_id_is_acknowledged_again_but_told_once(sink: Sink, said: list[str]) -> None:
    body = json.dumps(NOTICE)
    assert [post(sink.url, body, signed(body)) for _ in range(2)] == [204, 204]
    assert said[1:] == ["webhook msg_1 came again; it counts once"]


def test_a_signed_body_that_is_no_json_is_refused_as_such(sink: Sink) -> None:
    assert post(sink.url, "{", signed("{")) == 400


def test_other_paths_and_giant_bodies_are_refused(sink: Sink) -> None:
    assert post(sink.url + "/other", "{}", signed("{}")) == 404
    assert post(sink.url, "", {"content-length": str(MAX_BODY_BYTES + 1)}) == 413


def test_a_notice_without_lever_is_told_by_its_type_alone() -> None:
    assert summary({"type": "test", "timestamp": "2026-03-04T05:06:07Z", "data": {}}) == "webhook test"
