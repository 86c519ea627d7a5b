from __future__ import annotations

import functools
import json
import random
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import alert_letters
import httpx
import msgspec
import pytest
from standardwebhooks import Webhook

from alerts import alert_rows, channels_webhook, outbox, signing
from alerts.channels import DeliveryError, Route
from alerts.couriers import Couriers
from alerts.credentials import secret_of
from alerts.receivers import Receiver, ReceiverError, distinct
from queries.store import Store

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OLD = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"


def table(**keys: Any) -> Receiver:
    return msgspec.convert({"name": "oncall", "url": "http://127.0.0.1:9099/hook", **keys}, Receiver)


def test_a_table_with_a_secret_is_a_receiver_of_all_levers() -> None:
    receiver = table(secret=SECRET)
    assert (receiver.kind, receiver.wants("speculation"), receiver.wants("pool_ratio")) == ("webhook", True, True)
    assert secret_of(receiver, {}) == SECRET


def test_levers_route_notices() -> None:
    receiver = table(secret=SECRET, levers=["speculation"])
    assert (receiver.wants("speculation"), receiver.wants("pool_ratio")) == (True, False)


def test_segments_route_notices_by_all_keys_of_one_of_their_tables() -> None:
    receiver = table(secret=SECRET, segments=[{"model": "llama-*", "hardware": "H?00"}, {"tenant": "acme"}])
    wanted = [{"model": "llama-70b", "hardware": "H200", "topology": "tp8"}, {"tenant": "acme"}]
    unwanted = [{"model": "llama-70b"}, {"model": "qwen", "hardware": "H200"}, {"tenant": "acme2"}, {}]
    assert [receiver.wants("speculation", segment) for segment in wanted] == [True, True]
    assert [receiver.wants("speculation", segment) for segment in unwanted] == [False] * 4


def test_a_bracket_in_a_segment_is_itself() -> None:
    receiver = table(secret=SECRET, segments=[{"model": "m[ab]"}])
    assert (receiver.wants("speculation", {"model": "m[ab]"}), receiver.wants("speculation", {"model": "ma"})) == (True, False)


@pytest.mark.parametrize(
    ("severity", "wanted"),
    [("critical", ["critical"]), ("warning", ["critical", "warning", None]), ("info", ["critical", "warning", "info", None])],
)
def test_severity_routes_notices_from_there_up_and_none_counts_as_a_warning(severity: str, wanted: list[str | None]) -> None:
    receiver = table(secret=SECRET, severity=severity)
    assert [word for word in ("critical", "warning", "info", None) if receiver.wants("speculation", {}, word)] == wanted


KINDS: dict[str, dict[str, Any]] = {
    "webhook": {"url": "http://h", "secret": SECRET},
    "alertmanager": {"url": "http://h", "username": "u", "password": "hidden"},
    "chat": {"url": "https://h/hidden"},
    "email": {"host": "h", "sender": "A <a@b.c>", "to": ["d@e.f"], "username": "u", "password": "hidden"},
    "file": {"file": "notices.jsonl"},
}


@pytest.mark.parametrize("kind", list(KINDS))
def test_each_kind_takes_its_keys_and_shows_no_secret(kind: str) -> None:
    receiver = msgspec.convert({"name": "r", "kind": kind} | KINDS[kind], Receiver)
    assert repr(receiver) == f"Receiver(name='r', kind='{kind}')"


@pytest.mark.parametrize("kind", list(KINDS))
def test_each_kind_refuses_the_keys_of_the_others_and_names_its_own(kind: str) -> None:
    others = {key: value for keys in KINDS.values() for key, value in keys.items() if key not in KINDS[kind]}
    for key, value in others.items():
        if key == "secret" or key not in ("username", "password"):
            with pytest.raises(ValueError, match=f"receiver 'r': {key} is no key of kind '{kind}'; it takes ") as caught:
                msgspec.convert({"name": "r", "kind": kind, key: value} | KINDS[kind], Receiver)
            assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "missing", "told"),
    [
        ("webhook", "url", "kind 'webhook' takes url, which is not set"),
        ("webhook", "secret", "takes exactly one of secret, secret_file and secret_env, got none"),
        ("alertmanager", "url", "kind 'alertmanager' takes url"),
        ("alertmanager", "username", "username and a password are taken together"),
        ("chat", "url", "takes exactly one of url, url_file and url_env, got none"),
        ("email", "host", "kind 'email' takes host"),
        ("email", "to", "kind 'email' takes to"),
        ("email", "password", "username and a password are taken together"),
        ("file", "file", "kind 'file' takes file"),
    ],
)
def test_a_key_that_a_kind_needs_is_asked_for(kind: str, missing: str, told: str) -> None:
    keys = {key: value for key, value in KINDS[kind].items() if key != missing}
    with pytest.raises(ValueError, match="receiver 'r': ") as caught:
        msgspec.convert({"name": "r", "kind": kind} | keys, Receiver)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"security": "none"}, "security takes starttls or tls where there is a password"),
        ({"sender": "nobody"}, "'nobody' is no address"),
        ({"to": ["a@b.c", "x y@z"]}, "'x y@z' is no address"),
        ({"to": ["a@b.c\nBcc: x@y.z"]}, "is no address"),
        ({"port": 0}, ">= 1"),
        ({"group_by": ["modle"]}, "group_by: key 'modle' is unknown; did you mean 'model'?"),
        ({"password_file": "x"}, "takes at most one of password, password_file and password_env, got password, password_file"),
    ],
)
def test_a_mail_receiver_that_cannot_be_is_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError) as caught:
        msgspec.convert({"name": "r", "kind": "email"} | KINDS["email"] | changes, Receiver)
    assert told in str(caught.value)


@pytest.mark.parametrize("keys", [{}, {"secret": SECRET, "secret_env": "X"}, {"secret_file": "a", "secret_env": "X"}])
def test_exactly_one_source_of_the_secret_is_taken(keys: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="receiver 'oncall': takes exactly one of secret, secret_file and secret_env") as caught:
        table(**keys)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"levers": ["speculatoin"]}, "receiver 'oncall': levers: lever 'speculatoin' is unknown; did you mean 'speculation'?"),
        ({"url": "hooks.example"}, "receiver 'oncall': url takes http:// or https://"),
        ({"kind": "pigeon"}, "Invalid enum value 'pigeon'"),
        ({"retry_schedule": [5]}, "unknown field `retry_schedule`"),
        ({"retry_schedule_s": [-5]}, ">= 0.0"),
        ({"severity": "loud"}, "Invalid enum value 'loud'"),
        ({"segments": [{"modle": "x"}]}, "receiver 'oncall': segments: key 'modle' is unknown; did you mean 'model'?"),
        ({"group_wait_s": 5}, "receiver 'oncall': group_wait_s is no key of kind 'webhook'; it takes url, secret, secret_file"),
        ({"password": "hidden"}, "receiver 'oncall': password is no key of kind 'webhook'"),
        ({"heartbeat_s": 1}, ">= 10.0"),
    ],
)
def test_a_wrong_key_or_value_is_refused(keys: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError) as caught:
        table(secret=SECRET, **keys)
    assert told in str(caught.value)


def test_a_secret_comes_from_a_file_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(SECRET + "\n", encoding="utf-8")
    assert secret_of(table(secret_file=str(file)), {}) == SECRET
    assert secret_of(table(secret_env="HOOK_SECRET"), {"HOOK_SECRET": SECRET}) == SECRET


def test_a_secret_that_is_not_there_is_told_by_where_it_should_be(tmp_path: Path) -> None:
    with pytest.raises(ReceiverError, match=r"receiver 'oncall': secret_file .*nowhere: No such file"):
        secret_of(table(secret_file=str(tmp_path / "nowhere")), {})
    with pytest.raises(ReceiverError, match="receiver 'oncall': secret_env: environment variable HOOK_SECRET is not set"):
        secret_of(table(secret_env="HOOK_SECRET"), {})


@pytest.mark.parametrize("secret", ["MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_", "whsec_not base64!"])
def test_what_is_no_webhook_secret_is_refused_without_being_shown(secret: str) -> None:
    with pytest.raises(ReceiverError) as caught:
        secret_of(table(secret=secret), {})
    assert secret.removeprefix("whsec_") == "" or secret.removeprefix("whsec_") not in str(caught.value)
    assert "takes whsec_ and" in str(caught.value)


def test_a_receiver_never_shows_its_secret() -> None:
    assert SECRET not in repr(table(secret=SECRET)) + str(table(secret=SECRET))


def test_two_receivers_of_one_name_are_refused() -> None:
    with pytest.raises(ReceiverError, match="two receivers have this name"):
        distinct([table(secret=SECRET), table(secret=SECRET)])


def test_a_signature_is_that_of_the_reference_library_in_any_time_zone() -> None:
    now = datetime.now(UTC)
    headers = signing.headers(SECRET, "msg_1", now.astimezone(), '{"a":1}')
    assert headers["webhook-timestamp"] == str(int(now.timestamp()))
    assert Webhook(SECRET).verify('{"a":1}', headers) == {"a": 1}


@pytest.mark.parametrize("sources", [("secret", "secret_old"), ("secret_env", "secret_old_env"), ("secret_file", "secret_old_file")])
def test_while_a_secret_changes_a_notice_is_verified_by_the_new_and_the_old_one(sources: tuple[str, str], tmp_path: Path) -> None:
    kept = dict(zip(sources, (SECRET, OLD), strict=True))
    for source, secret in kept.items():
        if source.endswith("_file"):
            (tmp_path / source).write_text(secret, encoding="utf-8")
            kept[source] = str(tmp_path / source)
    environ = {source: secret for source, secret in kept.items() if source.endswith("_env")}
    receiver = table(**{source: source if source in environ else value for source, value in kept.items()})
    headers = signing.headers(secret_of(receiver, environ), "msg_1", datetime.now(UTC), '{"a":1}')
    assert len(headers["webhook-signature"].split()) == 2
    for secret in (SECRET, OLD):
        assert Webhook(secret).verify('{"a":1}', headers) == {"a": 1}


def test_an_old_secret_that_is_not_there_any_more_ends_the_change(tmp_path: Path) -> None:
    assert secret_of(table(secret=SECRET, secret_old_file=str(tmp_path / "gone")), {}) == SECRET
    assert secret_of(table(secret=SECRET, secret_old_env="OLD"), {}) == SECRET


def test_a_new_secret_that_is_empty_is_never_passed_over(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("", encoding="utf-8")
    with pytest.raises(ReceiverError, match="does not start with whsec_"):
        secret_of(table(secret_file=str(tmp_path / "empty"), secret_old=OLD), {})


def test_a_secret_in_a_file_is_read_again_for_each_attempt(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(SECRET, encoding="utf-8")
    receiver = table(secret_file=str(file))
    with httpx.Client() as client:
        to = Route(receiver, SECRET, client, random.Random(7), functools.partial(secret_of, receiver, {}))
        assert to.secret_now() == SECRET
        file.write_text(OLD, encoding="utf-8")
        assert to.secret_now() == OLD
        file.unlink()
        with pytest.raises(DeliveryError, match=r"secret_file .*: No such file") as caught:
            to.secret_now()
    assert not caught.value.permanent


def test_a_courier_signs_with_what_the_file_holds_now(tmp_path: Path) -> None:
    file, store = tmp_path / "secret", Store(tmp_path / "data")
    file.write_text(SECRET, encoding="utf-8")
    with alert_letters.hook() as hook:
        receiver = table(url=hook.url, secret_file=str(file))
        couriers = Couriers(store, [receiver], lambda: datetime.now(UTC), {})
        file.write_text(OLD, encoding="utf-8")
        outbox.put_in_test(store, receiver, datetime.now(UTC))
        couriers.start()
        for _ in range(1000):
            if not outbox.waiting(store, receiver.name):
                break
            threading.Event().wait(0.005)
        couriers.stop()
        [(_, headers, body)] = hook.got
    store.close()
    assert Webhook(OLD).verify(body, headers)["type"] == "test"


@pytest.mark.parametrize("kind", list(alert_rows.NAMES))
@pytest.mark.parametrize("form", ["standard", "alertmanager"])
def test_the_reference_verifier_takes_every_type_of_notice_by_either_secret(kind: str, form: str) -> None:
    with alert_letters.hook() as hook, alert_letters.client() as client:
        receiver = table(url=hook.url, secret=SECRET, secret_old=OLD, format=form)
        to = alert_letters.route(receiver, secret_of(receiver, {}), client)
        channels_webhook.send(to, [alert_letters.letter(kind)], datetime.now(UTC))
        [(_, headers, body)] = hook.got
    assert len(body.encode()) < 20_000
    for secret in (SECRET, OLD):
        assert Webhook(secret).verify(body, headers) == json.loads(body)


@pytest.mark.parametrize("keys", [{"retry_schedule_s": [float("inf")]}, {"retry_schedule_s": [1e15]}, {"heartbeat_s": float("inf")}])
def test_a_wait_that_no_calendar_has_is_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError, match="<= 31536000"):
        msgspec.convert({"name": "n", "url": "http://here", "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"} | keys, Receiver)
