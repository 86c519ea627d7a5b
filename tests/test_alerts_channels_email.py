"""Mails over a mail server on loopback."""

from __future__ import annotations

import email.policy
import json
import random
import ssl
from collections.abc import Iterator
from email.parser import BytesParser
from pathlib import Path
from typing import Any

import alert_letters
import httpx
import mail_server
import pytest
import trustme
from alert_letters import NOW, letter
from mail_server import MailServer

from alerts import channels_email
from alerts.channels import DeliveryError, Route, Sent
from alerts.receivers import Receiver

PASSWORD = "correct horse battery"


@pytest.fixture
def server() -> Iterator[MailServer]:
    with mail_server.serving() as serving:
        yield serving


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def context(authority: trustme.CA) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(made)
    return made


def receiver(server: MailServer, **changes: Any) -> Receiver:
    usual = {"name": "mail", "kind": "email", "host": "127.0.0.1", "port": server.port, "security": "none"}
    return Receiver(**usual | {"sender": "Leverwatch <lw@example.org>", "to": ("a@example.org", "Team <b@example.org>")} | changes)


def send(to: Receiver, *letters: Any, secret: str = "") -> Sent:
    with alert_letters.client() as client:
        return channels_email.send(alert_letters.route(to, secret, client), letters or (letter(),), NOW)


def test_a_mail_says_it_all_as_text_and_html_and_carries_the_notice(server: MailServer) -> None:
    assert send(receiver(server)) == Sent(250)
    [mail] = server.mails
    assert mail["Subject"] == "[critical] disable speculation: model=llama-70b, hardware=H200"
    assert (mail["From"], mail["To"]) == ("Leverwatch <lw@example.org>", "a@example.org, Team <b@example.org>")
    assert (mail["Message-ID"], mail["Auto-Submitted"]) == ("<msg_1@example.org>", "auto-generated")
    assert mail["Date"] == "Wed, 04 Mar 2026 03:00:00 +0000"
    plain = mail.get_body(("plain",))
    marked = mail.get_body(("html",))
    assert plain is not None
    assert marked is not None
    assert "gain -15 % (-22..-9 %), 41 blocks" in plain.get_content()
    assert "- vllm: --speculative-config null" in plain.get_content()
    assert "<h3>[critical] disable speculation" in marked.get_content()
    [file] = list(mail.iter_attachments())
    assert (file.get_filename(), json.loads(file.get_content())) == ("msg_1.json", json.loads(letter().text))


def test_names_from_traffic_are_no_markup_and_no_headers(server: MailServer) -> None:
    send(receiver(server), letter(segment={"model": "<b>x</b>\r\nBcc: evil@example.org"}))
    [mail] = server.mails
    assert mail["Bcc"] is None
    marked = mail.get_body(("html",))
    assert marked is not None
    assert "<b>x" not in marked.get_content()
    assert "&lt;b&gt;x" in marked.get_content()


def test_several_letters_are_one_mail_whose_id_does_not_hang_on_their_order(server: MailServer) -> None:
    one, two = letter(webhook_id="msg_1"), letter("lever.resolved", webhook_id="msg_2", lever="disaggregation", severity=None)
    send(receiver(server), one, two)
    send(receiver(server), two, one)
    first, second = server.mails
    assert first["Subject"] == "2 notices: disable speculation, resolved disaggregation"
    assert first["Message-ID"] == second["Message-ID"]
    assert [file.get_filename() for file in first.iter_attachments()] == ["msg_1.json", "msg_2.json"]


def test_mails_of_one_stream_are_one_thread(server: MailServer) -> None:
    for told in (letter(), letter("lever.resolved", webhook_id="msg_2"), letter(webhook_id="msg_3", segment={})):
        send(receiver(server), told)
    first, second, other = (mail["References"] for mail in server.mails)
    assert first == second
    assert other != first


@pytest.mark.parametrize(
    ("command", "answer", "permanent"),
    [
        ("mail", "550 no such sender", True),
        ("mail", "451 later", False),
        ("rcpt", "550 nobody", True),
        ("rcpt", "450 full", False),
        ("data", "554 no", True),
        ("taken", "452 no space", False),
        ("taken", "552 too large", True),
        ("EHLO", "hang up", False),
    ],
)
def test_a_refusal_is_for_good_where_the_server_says_5xx_of_the_mail(
    server: MailServer, command: str, answer: str, permanent: bool
) -> None:
    server.answers = {command.upper() if command != "taken" else command: answer}
    with pytest.raises(DeliveryError) as caught:
        send(receiver(server))
    assert caught.value.permanent is permanent
    if answer != "hang up":
        assert caught.value.status_code == int(answer[:3])
        assert answer.split(" ", 1)[1] in str(caught.value)


def test_a_mail_that_some_get_is_delivered_and_says_who_did_not(server: MailServer) -> None:
    server.answers = {"rcpt TO:<b@example.org>": "550 nobody"}
    assert send(receiver(server)) == Sent(250, "refused for b@example.org: 550 nobody")


def test_a_server_that_hangs_up_after_it_took_the_mail_took_it(server: MailServer) -> None:
    server.answers = {"QUIT": "hang up"}
    assert send(receiver(server)) == Sent(250)


def test_without_the_encryption_that_was_asked_for_nothing_is_sent(server: MailServer) -> None:
    server.answers = {"EHLO": "250 here"}
    with pytest.raises(DeliveryError, match="STARTTLS") as caught:
        send(receiver(server, security="starttls"))
    assert not caught.value.permanent
    assert server.mails == []


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_login_goes_over_tls_and_a_wrong_one_is_tried_again(
    authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, security: str
) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with mail_server.serving(context(authority), tls_at_once=security == "tls") as server:
        to = receiver(server, security=security, username="lw", password=PASSWORD)
        assert send(to, secret=PASSWORD) == Sent(250)
        assert [line for line in server.said if line.startswith("AUTH")] != []
        server.answers = {"AUTH": f"535 {PASSWORD} is wrong"}
        with pytest.raises(DeliveryError, match="SMTPAuthenticationError") as caught:
            send(to, secret=PASSWORD)
    assert not caught.value.permanent
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_server_whose_certificate_nobody_vouches_for_gets_nothing(authority: trustme.CA, security: str) -> None:
    with mail_server.serving(context(authority), tls_at_once=security == "tls") as server:
        with pytest.raises(DeliveryError, match="CERTIFICATE_VERIFY_FAILED") as caught:
            send(receiver(server, security=security))
        assert server.mails == []
    assert not caught.value.permanent


def test_a_server_that_is_not_there_is_tried_again() -> None:
    with mail_server.serving() as server:
        to = receiver(server)
    with pytest.raises(DeliveryError, match="ConnectionRefusedError") as caught:
        send(to)
    assert not caught.value.permanent


def test_a_name_from_traffic_begins_no_header_and_no_body(server: MailServer) -> None:
    word = "=?utf-8?q?x=0d=0aBcc:_other@example.org=0d=0aContent-Type:_text/html=0d=0a=0d=0a<b>hi</b>?="
    headers = channels_email.message(receiver(server), [letter()], NOW).keys()
    mail = channels_email.message(receiver(server), [letter(segment={"model": f"{word}\x00\u202e"})], NOW)
    sent = BytesParser(policy=email.policy.default).parsebytes(mail.as_bytes())
    assert sent.keys() == headers
    assert sent["Subject"].endswith("</b>?=")


def test_a_password_that_smtp_cannot_carry_is_tried_again_and_not_shown(server: MailServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smtplib.SMTP.starttls", lambda *_args, **_keys: None)
    asked = receiver(server, security="starttls", username="leverwatch", password="pässword")
    with pytest.raises(DeliveryError, match="that SMTP does not take") as caught:
        channels_email.send(Route(asked, "pässword", httpx.Client(), random.Random(7)), [letter()], NOW)
    assert not caught.value.permanent
    assert "pässword" not in str(caught.value)
