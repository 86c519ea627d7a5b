"""A server keeps house: what is too old goes while it runs, exports are refused before the disk is full, and all of it can be seen."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections import namedtuple
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from collectors_bodies import START, body, span
from fastapi import FastAPI

from collectors.spool import SpoolFullError
from leverwatch import config, house_api
from leverwatch.cli.main import main
from leverwatch.config import Config, ConfigError
from leverwatch.engine_room import EngineRoom
from leverwatch.housekeeping import SET_ASIDE, Housekeeping
from leverwatch.retention_settings import Retention, age, rules
from queries import sealing
from queries.sweep import GRACE_S

Usage = namedtuple("Usage", "total used free")
GIB = 1 << 30
NOW = datetime.now(UTC)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[EngineRoom]:
    opened = EngineRoom(tmp_path, Config())
    yield opened
    opened.close()


def put(room: EngineRoom, number: int = 1) -> None:
    room.spool.append("traces", "s", START, body(span(number))).result(10)


def sealed(room: EngineRoom) -> None:
    put(room)
    room.finish()
    mark = room.store.rows("select max(started_at) as newest from spans")[0]["newest"] + timedelta(hours=5)
    assert sealing.seal_next(room.store, mark) == 2
    written_at = (NOW - timedelta(minutes=10)).timestamp()
    for path in (*files(room, "spans"), *files(room, "requests")):
        os.utime(path, (written_at, written_at))


def files(room: EngineRoom, relation: str) -> list[Path]:
    return list((room.store.parts / relation).iterdir())


def free(monkeypatch: pytest.MonkeyPatch, free_bytes: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(100 * GIB, 0, free_bytes))


def ask(application: FastAPI, method: str, path: str) -> httpx.Response:
    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://leverwatch") as client:
            return await client.request(method, path)

    return asyncio.run(asked())


def test_what_is_too_old_goes_while_the_room_works_and_its_file_a_little_later(room: EngineRoom) -> None:
    sealed(room)
    house = Housekeeping(room.store, Retention())
    assert house.step(NOW) == 0
    assert house.step(NOW + timedelta(days=4)) == 0  # the next look is a minute away
    house = Housekeeping(room.store, Retention())
    assert house.step(NOW + timedelta(days=4)) == 1
    assert room.store.rows("select count(*) as n from spans") == [{"n": 0}]
    assert room.store.rows("select count(*) as n from requests") == [{"n": 1}]
    assert len(files(room, "spans")) == 1
    house.sweep.grace_s = house.sweep.written_for_s = -1.0
    house.sweep.note()
    assert house.step(NOW + timedelta(days=4)) == 1
    assert files(room, "spans") == []
    assert GRACE_S > 20


def test_a_part_that_goes_missing_is_told_within_a_minute_and_no_longer_once_it_is_back(room: EngineRoom) -> None:
    sealed(room)
    house = Housekeeping(room.store, Retention())
    house.step(NOW)
    assert house.lost_parts == ""
    (part,) = files(room, "spans")
    away = part.rename(room.folder / "away")
    for told in (f"{part} is missing (it is listed with 1 spans)", ""):
        house._next_check_s = 0.0
        house.step(NOW)
        assert house.lost_parts == told
        away.rename(part) if told else None


def test_little_free_space_takes_the_oldest_spans_first_and_counts_what_will_be_free(
    room: EngineRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed(room)
    later = NOW + timedelta(days=2)
    free(monkeypatch, 3 * GIB)
    assert Housekeeping(room.store, Retention()).step(later) == 0
    size = files(room, "spans")[0].stat().st_size
    free(monkeypatch, 2 * GIB - size)
    house = Housekeeping(room.store, Retention())
    assert house.step(later) == 1
    assert room.store.rows("select relation, reason from retention_log") == [{"relation": "spans", "reason": "disk"}]
    assert house.step(later + timedelta(days=10)) == 0
    assert room.store.rows("select count(*) as n from requests") == [{"n": 1}]


def test_requests_follow_when_the_spans_are_not_enough_but_none_younger_than_a_week(
    room: EngineRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed(room)
    free(monkeypatch, GIB)
    house = Housekeeping(room.store, Retention())
    assert [house.step(NOW + timedelta(days=6)) for _ in range(2)] == [1, 0]
    house = Housekeeping(room.store, Retention())
    assert house.step(NOW + timedelta(days=8)) == 1
    assert room.store.rows("select count(*) as n from requests") == [{"n": 0}]


def test_exports_are_refused_before_the_disk_is_full_and_taken_again_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free(monkeypatch, GIB - 1)
    room = EngineRoom(tmp_path, Config())
    with pytest.raises(SpoolFullError, match="bytes free; exports are taken from 1,073,741,824 on"):
        put(room)
    free(monkeypatch, GIB)
    monkeypatch.setattr("collectors.free_space.LOOK_EVERY_S", -1.0)
    put(room)
    assert room.drain()
    room.close()


def test_bodies_that_were_set_aside_go_by_age_and_by_size(room: EngineRoom) -> None:
    folder = room.folder / SET_ASIDE
    folder.mkdir()
    for number, days in enumerate((40, 20, 10)):
        path = folder / f"{number}.pb"
        path.write_bytes(b"x" * 100)
        at = (NOW - timedelta(days=days)).timestamp()
        os.utime(path, (at, at))
    held = {row["relation"]: row for row in room.house.holdings()}[SET_ASIDE]
    assert (held["bytes"], held["oldest"][:10]) == (300, f"{NOW - timedelta(days=40):%Y-%m-%d}")
    assert Housekeeping(room.store, Retention()).step(NOW) == 1
    assert Housekeeping(room.store, Retention(set_aside_max_bytes=150)).step(NOW) == 1
    assert [path.name for path in folder.iterdir()] == ["2.pb"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ('spans_max_age = "12h"', "24h or more is taken"),
        ('requests_max_age = "soon"', 'hours or days such as "36h" or "90d" are taken'),
        ("cells_max_bytes = -1", "0 or more bytes are taken"),
        ('span_max_age = "3d"', "did you mean 'spans_max_age'"),
    ],
)
def test_a_setting_that_cannot_be_used_is_told(tmp_path: Path, asked: str, said: str) -> None:
    (tmp_path / "leverwatch.toml").write_text(f"[retention]\n{asked}\n")
    with pytest.raises(ConfigError, match=said):
        config.read(None, tmp_path, {})


def test_ages_are_hours_or_days_and_empty_is_for_ever() -> None:
    assert age("k", "36h") == timedelta(hours=36)
    assert age("k", "90d") == timedelta(days=90)
    assert age("k", "") is None
    assert {rule.relation: rule.max_age for rule in rules(Retention(spans_max_age=""))}["spans"] is None


def test_the_api_shows_what_is_held_and_what_was_dropped_and_stages_snapshots(room: EngineRoom) -> None:
    sealed(room)
    Housekeeping(room.store, Retention()).step(NOW + timedelta(days=4))
    application = FastAPI()
    application.include_router(house_api.router(room))
    said = ask(application, "GET", "/api/storage").json()
    assert {row["relation"]: row["rows"] for row in said["holdings"]}["requests"] == 1
    assert [(row["relation"], row["reason"]) for row in said["dropped"]] == [("spans", "age")]
    staged = ask(application, "POST", "/api/snapshots").json()
    assert json.loads((Path(staged["folder"]) / "snapshot.json").read_text())["rows"]["requests"] == 1
    with room.taking_snapshot:
        assert ask(application, "POST", "/api/snapshots").status_code == 409


def test_a_report_over_a_period_that_was_dropped_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    room = EngineRoom(tmp_path, Config())
    sealed(room)
    Housekeeping(room.store, Retention(spans_max_age="", requests_max_age="3d")).step(NOW + timedelta(days=4))
    room.close()
    asked = ["report", "--data", str(tmp_path), "--metrics", "tpot_s", "--format", "json"]
    assert main([*asked, "--since", "2023-11-14", "--until", "2023-11-20"]) == 0
    assert "1 request of this period, from 2023-11-14T22:00Z to 2023-11-14T23:00Z, was dropped for its age" in capsys.readouterr().err
    assert main([*asked, "--since", "2023-11-15"]) == 0
    assert capsys.readouterr().err == "leverwatch: there is no request in what was asked for; `leverwatch doctor` says what came\n"
