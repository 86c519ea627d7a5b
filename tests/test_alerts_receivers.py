from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from standardwebhooks import Webhook

from alerts import signing
from alerts.receivers import Receiver, ReceiverError, distinct, secret_of

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def table(**keys: Any) -> Receiver:
    return msgspec.convert({"name": "oncall", "url": "http://127.0.0.1:9099/hook", **keys}, Receiver)


def test_a_table_with_a_secret_is_a_receiver_of_all_levers() -> None:
    receiver = table(secret=SECRET)
    assert (receiver.kind, receiver.wants("speculation"), receiver.wants("pool_ratio")) == ("webhook", True, True)
    assert secret_of(receiver, {}) == SECRET


def test_levers_route_notices() -> None:
    receiver = table(secret=SECRET, levers=["speculation"])
    assert (receiver.wants("speculation"), receiver.wants("pool_ratio")) == (True, False)


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
