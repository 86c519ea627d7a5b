"""The receivers of docs/webhooks.md, as they stand there, take good notices and refuse altered and old ones."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook

from alerts import signing

PAGE = Path(__file__).parents[1] / "docs/webhooks.md"
SECRET, OTHER = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", "whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4"
BODY = json.dumps(
    {"type": "lever.disable", "data": {"lever": "speculation", "segment": {"model": "m"}, "action": "disable", "reason": "ü −13 %"}}
)
Answer = Callable[[dict[str, str], str], int]
STATUS_UNAUTHORIZED, STATUS_TAKEN = 401, 204


def program(language: str, marker: str) -> str:
    """The block of the page in a language that holds some text."""
    [found] = [block for block in re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE) if marker in block]
    return str(found)


def headers(secrets: str = SECRET, webhook_id: str = "msg_1", ago: timedelta = timedelta()) -> dict[str, str]:
    """The headers that are sent with BODY."""
    return signing.headers(secrets, webhook_id, datetime.now(UTC) - ago, BODY)


def assert_takes_what_is_sound(answer: Answer) -> None:
    assert answer(headers(), BODY) == STATUS_TAKEN
    assert answer(headers(f"{SECRET} {OTHER}", "msg_2"), BODY) == STATUS_TAKEN, "signed by two secrets"
    assert answer(headers(), BODY) == STATUS_TAKEN, "sent again"
    assert answer(headers(webhook_id="msg_3"), BODY.replace("disable", "enable_")) == STATUS_UNAUTHORIZED, "altered"
    assert answer(headers(webhook_id="msg_3") | {"webhook-id": "msg_4"}, BODY) == STATUS_UNAUTHORIZED, "another's id"
    assert answer(headers(OTHER, "msg_3"), BODY) == STATUS_UNAUTHORIZED, "another secret"
    assert answer(headers(webhook_id="msg_3", ago=timedelta(minutes=6)), BODY) == STATUS_UNAUTHORIZED, "old"
    assert answer(headers(webhook_id="msg_3", ago=timedelta(minutes=-6)), BODY) == STATUS_UNAUTHORIZED, "from the future"
    assert answer({"webhook-id": "msg_3"}, BODY) == STATUS_UNAUTHORIZED, "not signed"


def test_the_python_receiver_takes_good_notices_once_and_refuses_altered_and_old_ones(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "receiver"}
    exec(compile(program("python", "def take"), "receiver.py", "exec"), names)  # noqa: S102  # it is the page's own program
    seen = sqlite3.connect(":memory:")
    seen.execute("create table notices (id text primary key, body text)")
    assert_takes_what_is_sound(lambda sent, body: names["take"](Webhook(SECRET), seen, sent, body.encode()))
    seen.close()
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [["lever.disable", "speculation"]] * 2


def test_the_python_receiver_forgets_a_notice_that_it_could_not_act_on() -> None:
    names: dict[str, Any] = {"__name__": "receiver"}
    exec(compile(program("python", "def take"), "receiver.py", "exec"), names)  # noqa: S102  # it is the page's own program
    seen, acted = sqlite3.connect(":memory:"), []
    seen.execute("create table notices (id text primary key, body text)")
    names["act"] = lambda _notice: 1 / 0
    with pytest.raises(ZeroDivisionError):
        names["take"](Webhook(SECRET), seen, headers(), BODY.encode())
    names["act"] = acted.append
    assert names["take"](Webhook(SECRET), seen, headers(), BODY.encode()) == STATUS_TAKEN
    seen.close()
    assert len(acted) == 1


@pytest.mark.skipif(not all(map(shutil.which, ("bash", "openssl", "jq"))), reason="bash, openssl or jq is not installed")
def test_the_shell_receiver_takes_good_notices_once_and_refuses_altered_and_old_ones(tmp_path: Path) -> None:
    script, said = tmp_path / "receive.sh", []
    script.write_text(program("sh", "openssl dgst"))

    def answer(sent: dict[str, str], body: str) -> int:
        head = "".join(f"{name.title()}: {value}\r\n" for name, value in {**sent, "content-length": str(len(body.encode()))}.items())
        request = f"POST /hook HTTP/1.1\r\n{head}\r\n{body}".encode()
        environment = {**os.environ, "ONCALL_WEBHOOK_SECRET": SECRET, "SEEN": str(tmp_path / "seen")}
        ran = subprocess.run(["bash", script], input=request, capture_output=True, env=environment, timeout=30, check=True)
        said.extend(ran.stderr.decode().splitlines())
        return int(ran.stdout.split()[1])

    assert_takes_what_is_sound(answer)
    assert said == ['lever.disable speculation {"model":"m"} ü −13 %'] * 2


@pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")
def test_the_go_receiver_takes_good_notices_once_and_refuses_altered_and_old_ones(tmp_path: Path) -> None:
    (tmp_path / "receiver.go").write_text(program("go", "package main"))
    subprocess.run(["go", "build", "-o", "receiver", "receiver.go"], cwd=tmp_path, timeout=120, check=True)
    environment = {**os.environ, "ONCALL_WEBHOOK_SECRET": SECRET, "SEEN": str(tmp_path / "seen"), "PORT": "0"}
    with subprocess.Popen([tmp_path / "receiver"], stdout=subprocess.PIPE, text=True, env=environment) as running:
        assert running.stdout is not None
        url = running.stdout.readline().split()[-1]
        with httpx.Client() as client:
            assert_takes_what_is_sound(lambda sent, body: client.post(url, headers=sent, content=body.encode()).status_code)
        running.terminate()
        assert [line.split()[:2] for line in running.stdout] == [["lever.disable", "speculation"]] * 2
