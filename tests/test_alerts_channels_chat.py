"""Chats: an incoming webhook and a service of Apprise on loopback."""

from __future__ import annotations

import logging
from typing import Any

import alert_letters
import pytest
from alert_letters import NOW, Hook, letter

from alerts import channels_chat
from alerts.channels import DeliveryError, Sent
from alerts.credentials import secret_of
from alerts.receivers import Receiver, ReceiverError

TOKEN = "T0KEN4secret"


def send(url: str, *letters: Any) -> Sent:
    receiver = Receiver(name="chat", kind="chat", url=url)
    with alert_letters.client() as client:
        return channels_chat.send(alert_letters.route(receiver, secret_of(receiver, {}), client), letters or (letter(),), NOW)


def test_an_incoming_webhook_gets_title_reason_and_link(hook: Hook) -> None:
    assert send(hook.url) == Sent(200)
    assert hook.bodies == [
        {
            "text": "*[critical] disable speculation: model=llama-70b, hardware=H200*\n"
            "net ITL 31 ms against 27 ms in control, gain -15 % (-22..-9 %), 41 blocks\n"
            "Decided 2026-03-04 02:55 UTC, 5 min ago.\n"
            "Do: Restart without a draft model\n"
            "vllm: --speculative-config null\n"
            "http://leverwatch.example/segment?model=llama-70b"
        }
    ]


def test_several_letters_are_one_message_that_tells_each(hook: Hook) -> None:
    send(hook.url, letter(), letter("lever.resolved", webhook_id="msg_2", lever="disaggregation", reason="x" * 500))
    [body] = hook.bodies
    lines = body["text"].splitlines()
    assert lines[0] == "*2 notices: disable speculation, resolved disaggregation*"
    assert lines[1::3] == [
        "• [critical] disable speculation: model=llama-70b, hardware=H200",
        "• resolved disaggregation: model=llama-70b, hardware=H200",
    ]
    assert lines[5] == "x" * 149 + "…"


def test_as_many_letters_as_go_together_fit_the_shortest_limit_of_a_service() -> None:
    letters = [letter(reason="x" * 500, segment={"model": "m" * 300})] * channels_chat.MOST_LETTERS
    assert len(channels_chat.body(letters)) < 2000


def test_names_from_traffic_call_nobody_and_are_no_markup(hook: Hook) -> None:
    send(hook.url, letter(segment={"model": "<!channel> @everyone *x* `y`"}))
    text = hook.bodies[0]["text"]
    assert "model=&lt;!channel&gt; @\u200beveryone x y*" in text
    assert "<" not in text


@pytest.mark.parametrize(("status", "permanent"), [(400, True), (403, False), (404, True), (410, True), (429, False), (500, False)])
def test_a_webhook_that_is_no_more_has_failed_for_good(hook: Hook, status: int, permanent: bool) -> None:
    hook.answers = [(status, {"retry-after": "90"}, "no_service")]
    with pytest.raises(DeliveryError) as caught:
        send(f"{hook.url}/services/{TOKEN}")
    assert (caught.value.permanent, caught.value.status_code) == (permanent, status)
    assert caught.value.retry_after_s == (90.0 if status == 429 else 0.0)
    assert ("no_service" in str(caught.value)) is (status != 410)
    assert TOKEN not in str(caught.value)


def test_what_a_chat_answers_does_not_show_its_url(hook: Hook) -> None:
    hook.answers = [(500, {}, f"bad token {TOKEN}")]
    with pytest.raises(DeliveryError, match="answered 500: bad token ") as caught:
        send(f"{hook.url}/services/{TOKEN}")
    assert TOKEN not in str(caught.value)


def test_a_service_of_apprise_gets_the_message(hook: Hook) -> None:
    assert send(hook.url.replace("http://", "json://")) == Sent()
    [body] = hook.bodies
    assert (body["title"], body["type"]) == ("[critical] disable speculation: model=llama-70b, hardware=H200", "failure")
    assert body["message"].startswith("net ITL 31 ms against 27 ms")


def test_what_is_over_is_a_success_to_apprise(hook: Hook) -> None:
    send(hook.url.replace("http://", "json://"), letter("lever.resolved"))
    assert hook.bodies[0]["type"] == "success"


def test_a_service_that_refuses_is_tried_again_and_its_secret_is_nowhere(hook: Hook, caplog: pytest.LogCaptureFixture) -> None:
    hook.answers = [(500, {}, "")]
    with caplog.at_level(logging.INFO), pytest.raises(DeliveryError) as caught:
        send(hook.url.replace("http://", f"json://user:{TOKEN}@") + f"/{TOKEN}")
    assert not caught.value.permanent
    assert "500" in str(caught.value)
    assert TOKEN not in str(caught.value) + caplog.text


@pytest.mark.parametrize("url", [f"hooks.example/{TOKEN}", f"discord://{TOKEN}", f"nosuch://{TOKEN}/x", f"https://h.example/ {TOKEN}"])
def test_a_url_that_names_no_chat_is_refused_at_start_without_being_shown(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ReceiverError, match="receiver 'chat': url") as caught:
        secret_of(Receiver(name="chat", kind="chat", url=url), {})
    assert TOKEN not in str(caught.value) + caplog.text


@pytest.mark.parametrize(
    "url",
    [
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
        "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js",
        "matrixs://user:pass@matrix.example/#room",
        "tgram://123456789:abcdefg_hijklmnop/12315544",
        "mmost://localhost/3ccdd113474722377935511fc85d3dd4",
        "ntfy://ntfy.example/levers",
    ],
)
def test_urls_of_common_services_are_taken(url: str) -> None:
    assert secret_of(Receiver(name="chat", kind="chat", url=url), {}) == url
