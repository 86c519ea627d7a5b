"""Break-evens as they are asked for: the command in its formats, a folder, a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from break_even_cells import closed, put
from fastapi import FastAPI

from dashboards import api
from leverwatch.cli.main import main
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom, utc_now
from leverwatch.local import Local
from leverwatch.remote import Remote
from queries.report import ReportError
from queries.store import Store

GAINS = {"<2": 0.4, "4-7": 0.1, "64-127": -0.3}
SEGMENT = {"model": "m"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder in which speculation pays at small batches and loses at large ones."""
    path = tmp_path_factory.mktemp("data")
    store = Store(path)
    put(store, range(60), {("m", None): GAINS})
    closed(store, 60)
    store.close()
    return path


@pytest.fixture
def room(folder: Path) -> Iterator[EngineRoom]:
    opened = EngineRoom(folder, Config())
    yield opened
    opened.close()


def printed(capsys: pytest.CaptureFixture[str], folder: Path, *asked: str) -> tuple[int, str]:
    status = main(["effects", "--data", str(folder), "--lever", "speculation", "--break-even", *asked])
    return status, capsys.readouterr().out


def test_the_command_says_in_words_where_a_lever_stops_paying(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, text = printed(capsys, folder)
    assert status == 0
    for said in ("batch", "partly", "pays up to 4-7, loses from 64-127 on, not resolved yet between", " 7 ", " 64 "):
        assert said in text
    assert "gains_low" not in text


def test_json_and_csv_have_every_bucket(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [row] = json.loads(printed(capsys, folder, "--format", "json", "--by", "model")[1])
    assert row["buckets"][:3] == ["<2", "2-3", "4-7"]
    assert row["gains"][1] is None
    head, line = printed(capsys, folder, "--format", "csv")[1].splitlines()
    assert head.startswith("lever,segment,key,metric,basis,since,until,buckets,blocks,gains,")
    assert '"[59, 0, 59, 0, 0, 0, 59, 0, 0]"' in line


def test_a_lever_of_which_nothing_is_known_is_said_with_status_3(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["effects", "--data", str(folder), "--lever", "prefix_caching", "--break-even"]) == 3
    assert "no break-even of prefix_caching yet: it takes blocks with both arms in a bucket" in capsys.readouterr().err


def test_a_lever_or_key_that_is_unknown_is_refused(room: EngineRoom) -> None:
    with pytest.raises(ReportError, match="lever 'speculatoin' is unknown"):
        room.break_even("speculatoin")
    with pytest.raises(ReportError, match="key 'modell' is unknown"):
        room.break_even("speculation", ["modell"])
    assert room.break_even("speculation", ["hardware"]).is_empty()


def served(room: EngineRoom) -> httpx.Client:
    """A client of the routes over a folder."""
    application = FastAPI()
    application.include_router(api.router(room, room.sandbox, utc_now, room.studio))

    async def asked(request: httpx.Request) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://test") as client:
            got = await client.get(request.url.raw_path.decode())
        return httpx.Response(got.status_code, content=got.content, headers=got.headers)

    return httpx.Client(base_url="http://test", transport=httpx.MockTransport(lambda request: asyncio.run(asked(request))))


def test_a_server_answers_as_a_folder_does(room: EngineRoom) -> None:
    asked = Remote("http://127.0.0.1:1")
    asked.http = served(room)
    [row] = asked.http.get("/api/break-even?lever=speculation&by=model").json()
    assert (row["segment"], row["state"], row["pays_edge"], row["loses_edge"]) == (SEGMENT, "partly", 7, 64)
    far, near = asked.break_even("speculation"), Local(room).break_even("speculation")
    same = [name for name in near.columns if name not in ("since", "until")]  # times are text over HTTP
    assert far.select(same).rows() == near.select(same).rows()


@pytest.mark.parametrize("query", ["", "?lever=nope", "?lever=speculation&by=modell"])
def test_a_question_that_cannot_be_asked_is_an_error(room: EngineRoom, query: str) -> None:
    answer = served(room).get(f"/api/break-even{query}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid")
