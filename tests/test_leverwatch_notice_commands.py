"""`leverwatch silence` and `leverwatch deliveries`, on a folder and through a server's routes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from notice_rows import SECRET, emptied, flip, receiver, tried

from alerts import outbox
from alerts.api import router
from leverwatch.cli.main import main
from leverwatch.error_shape import shape_errors
from leverwatch.notice_desk import Notices, RemoteNotices
from leverwatch.notice_desk_local import LocalNotices
from leverwatch.remote import Remote
from queries.sandbox import SqlError
from queries.store import Store


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    hook = f'[[receivers]]\nname = "oncall"\nurl = "http://127.0.0.1:9/hook"\nsecret = "{SECRET}"\n'
    (folder / "leverwatch.toml").write_text(hook, encoding="utf-8")
    Store(folder).close()
    return folder


@pytest.fixture
def given_up(folder: Path) -> str:
    """A folder with one notice that was given up; its delivery."""
    store, now = Store(folder), datetime.now(UTC)
    emptied(store)
    flip(store, "bad", "off_recommended", 1, decided_at=now)
    outbox.put_in(store, receiver(), now, now, caught_up=True)
    tried(store, "failed", now=now)
    [row] = store.rows("select delivery_id from deliveries where outcome = 'failed'")
    store.close()
    return str(row["delivery_id"])


def told(capsys: pytest.CaptureFixture[str], folder: Path, *words: str, status: int = 0) -> Any:
    assert main([*words, "--data", str(folder), "--format", "json"]) == status
    return json.loads(capsys.readouterr().out or "null")


def test_a_silence_is_added_listed_and_ended(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [begun] = told(capsys, folder, "silence", "add", "--lever", "*", "--segment", "model=llama-*", "--for", "2h", "--by", "ana")
    lasts = datetime.fromisoformat(begun["ends_at"]) - datetime.fromisoformat(begun["starts_at"])
    assert (lasts, begun["segment"], begun["created_by"]) == (timedelta(hours=2), {"model": "llama-*"}, "ana")
    assert begun.pop("notes")[0].startswith("it is about nothing so far")
    assert told(capsys, folder, "silence", "list") == [begun]
    assert main(["silence", "list", "--data", str(folder)]) == 0
    assert "lever=* model=llama-*" in capsys.readouterr().out
    [ended] = told(capsys, folder, "silence", "end", begun["silence_id"][:12])
    assert ended["state"] == "ended"
    assert told(capsys, folder, "silence", "list") == []
    assert [row["silence_id"] for row in told(capsys, folder, "silence", "list", "--all")] == [begun["silence_id"]]


def test_a_flip_is_snoozed_by_the_beginning_of_its_id_by_whoever_asks(
    folder: Path, given_up: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert given_up
    store = Store(folder)
    flip(store, "abcdef0123", "off_recommended", 1, segment='{"model":"n"}')
    store.close()
    monkeypatch.setenv("LOGNAME", "ana")
    [begun] = told(capsys, folder, "silence", "snooze", "abcdef", "--for", "1h", "--comment", "known")
    assert (begun["flip_id"], begun["created_by"], begun["comment"]) == ("abcdef0123", "ana", "known")
    assert main(["silence", "snooze", "nobody", "--for", "1h", "--data", str(folder)]) == 2
    assert "there is no flip 'nobody'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["add", "--lever", "speculatoin", "--for", "1h"], "did you mean 'speculation'"),
        (["add", "--receiver", "oncal", "--for", "1h"], "did you mean 'oncall'"),
        (["add", "--segment", "model", "--for", "1h"], "KEY=VALUE is taken"),
        (["add", "--lever", "*"], "exactly one of ends_at and for_s"),
        (["add", "--lever", "*", "--until", "soon"], "Invalid RFC3339"),
        (["end", "nothing"], "there is no silence 'nothing'"),
    ],
)
def test_a_silence_that_cannot_be_is_told_in_a_line(folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert main(["silence", *words, "--data", str(folder)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert said in line


def test_what_was_given_up_is_shown_and_sent_again(folder: Path, given_up: str, capsys: pytest.CaptureFixture[str]) -> None:
    [row] = told(capsys, folder, "deliveries", "--failed", status=1)
    assert (row["delivery_id"], row["outcome"]) == (given_up, "failed")
    assert main(["deliveries", "--data", str(folder)]) == 0
    assert "failed" in capsys.readouterr().out
    assert main(["deliveries", "--replay", given_up, "--data", str(folder)]) == 0
    assert "is queued for oncall again" in capsys.readouterr().err
    assert told(capsys, folder, "deliveries", "--failed") == []


def test_a_receiver_that_asked_to_wait_is_named_with_its_time(folder: Path, given_up: str, capsys: pytest.CaptureFixture[str]) -> None:
    until = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)
    store = Store(folder)
    with store.write() as transaction:
        transaction.execute("update deliveries set held_until = $until where outcome = 'failed'", {"until": until})
    store.close()
    text = f"{until:%Y-%m-%dT%H:%M:%SZ}"
    assert main(["deliveries", "--replay", given_up, "--data", str(folder)]) == 0
    assert f"again, and goes out after {text}: it asked for nothing before" in capsys.readouterr().err
    assert main(["deliveries", "--data", str(folder)]) == 0
    [waiting] = [line for line in capsys.readouterr().out.splitlines() if "pending" in line]
    assert text in waiting


def test_all_that_was_given_up_for_a_receiver_is_sent_again(
    folder: Path,
    given_up: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert given_up
    assert main(["deliveries", "--replay", "all", "--receiver", "oncall", "--data", str(folder)]) == 0
    assert "1 notices are queued for oncall again; 0 are not: it was told something newer" in capsys.readouterr().err
    assert main(["deliveries", "--replay", "all", "--data", str(folder)]) == 2
    assert main(["deliveries", "--replay", "all", "--receiver", "nobody", "--data", str(folder)]) == 2
    assert main(["deliveries", "--replay", "nothing", "--data", str(folder)]) == 2
    assert "there is no delivery 'nothing'" in capsys.readouterr().err


class InProcess(httpx.BaseTransport):
    """An application asked without a port."""

    def __init__(self, application: FastAPI) -> None:
        self._there = httpx.ASGITransport(application)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        async def answered() -> httpx.Response:
            answer = await self._there.handle_async_request(request)
            return httpx.Response(answer.status_code, headers=answer.headers, content=await answer.aread(), request=request)

        return asyncio.run(answered())


@pytest.fixture
def desks(folder: Path, given_up: str) -> Iterator[tuple[Notices, Notices]]:
    """The same store asked here, and through the routes of a server."""
    assert given_up
    store, application = Store(folder), FastAPI()
    shape_errors(application)
    application.include_router(router(store, lambda: datetime.now(UTC), receivers=(receiver(),)))
    remote = Remote("http://leverwatch")
    remote.http.close()
    remote.http = httpx.Client(transport=InProcess(application), base_url="http://leverwatch")
    yield LocalNotices(store, lambda: datetime.now(UTC), (receiver(),)), remote.notices()
    remote.close()
    store.close()


def test_a_server_is_asked_as_a_folder_is(desks: tuple[Notices, Notices]) -> None:
    here, there = desks
    assert isinstance(there, RemoteNotices)
    begun = there.silence({"lever": "*", "for_s": 60.0})
    assert begun.pop("notes") == []
    assert here.silences("active") == there.silences("active") == [begun]
    assert there.end_silence(begun["silence_id"])["state"] == "ended"
    assert there.snooze("bad", {"for_s": 60.0})["flip_id"] == here.snooze("bad", {"for_s": 60.0})["flip_id"] == "bad"
    assert here.deliveries(outcome="failed") == there.deliveries(outcome="failed")
    assert there.replay_all("oncall") == {"receiver": "oncall", "replayed": 1, "superseded": 0, "held_until": None}
    [row] = there.deliveries("oncall", "pending")
    assert there.replay(row["delivery_id"])["webhook_id"] == row["webhook_id"]
    with pytest.raises(SqlError, match="receiver 'nobody' is unknown"):
        there.replay_all("nobody")


def test_a_server_that_refuses_says_why(desks: tuple[Notices, Notices]) -> None:
    _, there = desks
    with pytest.raises(SqlError, match="at most 30 days"):
        there.silence({"lever": "*", "for_s": 1e9})
