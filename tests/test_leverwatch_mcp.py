"""The MCP server as a client sees it, over standard input and output, in front of a store; what it answers is bounded and only read."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import elsewhere_rooms
import polars as pl
import pytest

from leverwatch import mcp_answers
from leverwatch.cli import main as command_line
from leverwatch.local import Local

mcp = pytest.importorskip("mcp", reason="the mcp extra is not installed")
server = pytest.importorskip("leverwatch.mcp_server").server
TOOLS = {"report", "effects", "verdicts", "explain", "sql", "schema", "questions", "doctor"}
Ask = Callable[[Any], Awaitable[None]]


class Kept(Local):
    """A folder that stays open when a tool lets it go."""

    def close(self) -> None:
        """Does nothing: the room is the test's."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("data")
    with elsewhere_rooms.room(made):
        return made


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    with elsewhere_rooms.room(tmp_path_factory.mktemp("kept")) as room:
        yield Kept(room)


def asked(server: Any, ask: Ask) -> None:
    async def run() -> None:
        async with mcp.Client(server, read_timeout_seconds=60) as client:
            await ask(client)

    asyncio.run(run())


def test_a_client_finds_and_asks_the_tools_over_standard_input_and_output(folder: Path) -> None:
    command = ["-m", "leverwatch.cli.main", "mcp", "--data", str(folder)]

    async def ask(client: Any) -> None:
        listed = (await client.list_tools()).tools
        assert {tool.name for tool in listed} == TOOLS
        assert all(tool.annotations.read_only_hint for tool in listed)
        assert all(tool.description and tool.input_schema["type"] == "object" for tool in listed)
        assert "null means not known" in client.instructions
        report = await called(client, "report", by="model", metrics="tpot_s", since="2026-03-01")
        assert (report["row_count"], report["cut"]) == (4, None)

    asked(mcp.StdioServerParameters(command=sys.executable, args=command, env=elsewhere_rooms.environment()), ask)


def test_every_tool_answers_what_the_connection_says(kept: Kept) -> None:
    async def ask(client: Any) -> None:
        expected = kept.report(by="model", metrics="tpot_s", since="2026-03-01")
        report = await called(client, "report", by="model", metrics="tpot_s", since="2026-03-01")
        assert report["columns"] == expected.columns
        assert [row[2] for row in report["rows"]] == pytest.approx(expected["tpot_s"].to_list())
        assert (await called(client, "effects", lever="speculation"))["row_count"] == len(kept.effects("speculation"))
        verdicts = await called(client, "verdicts", lever="speculation")
        assert verdicts["rows"][0][verdicts["columns"].index("verdict")] == "disable"
        assert (await called(client, "verdicts", verdict="keep"))["row_count"] == 1
        rows = await called(client, "sql", statement="select $a + 1 as b", params={"a": 41})
        assert rows == {"columns": ["b"], "rows": [[42]], "row_count": 1, "cut": None}
        schema = await called(client, "schema", table="requests", metric="tpot_s")
        assert schema["metrics"]["rows"][0][2] == "s/token"
        assert schema["tables"]["row_count"] == 1
        explained = await called(client, "explain", a="arms['speculation'] = 'control'", since="2026-03-01")
        assert explained["row_count"] > 0
        assert (await called(client, "doctor"))["cut"] is None
        assert (await called(client, "questions"))["columns"] == ["name", "group", "title", "answers"]

    asked(server(lambda: kept), ask)


def test_what_is_refused_comes_back_as_an_error_in_a_sentence(kept: Kept) -> None:
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("sql", {"statement": "delete from flips"}, "ad-hoc SQL only reads"),
        ("sql", {"statement": "select * from read_csv('/etc/passwd')"}, "only the store's own tables"),
        ("sql", {"statement": "select 1", "limit": 100_000}, "less than or equal to 200"),
        ("report", {"by": "nope"}, "nope"),
        ("report", {"metrics": "itl"}, "did you mean"),
        ("report", {"since": "yesterday"}, "yesterday"),
        ("effects", {"lever": "speculaton"}, "speculation"),
        ("questions", {"name": "nope"}, "nope"),
        ("verdicts", {"lever": "speculaton"}, "known: speculation"),
        ("verdicts", {"verdict": "off"}, "known: keep"),
        ("schema", {"table": "nope"}, "requests"),
        ("schema", {"metric": "nope"}, "net_itl_s"),
    ]

    async def ask(client: Any) -> None:
        for tool, arguments, said in refused:
            answer = await client.call_tool(tool, arguments)
            assert answer.is_error, tool
            assert said in answer.content[0].text
            assert "Traceback" not in answer.content[0].text

    asked(server(lambda: kept), ask)


async def called(client: Any, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    told: dict[str, Any] = answer.structured_content
    assert json.loads(answer.content[0].text) == told
    return told


def test_an_answer_with_many_rows_says_how_many_were_left_out() -> None:
    answer = mcp_answers.of_frame(pl.DataFrame({"n": range(1000)}))
    assert (len(answer["rows"]), answer["row_count"]) == (200, 1000)
    assert answer["cut"].startswith("only the first 200 of 1,000 rows are here: ")


def test_an_answer_with_long_texts_stays_below_its_characters() -> None:
    answer = mcp_answers.of_frame(pl.DataFrame({"text": ["x" * 5000] * 150}))
    assert len(json.dumps(answer["rows"])) <= mcp_answers.MOST_CHARACTERS
    assert answer["cut"].startswith("only the first ")
    assert all(row[0].endswith("…") for row in answer["rows"])
    nested = mcp_answers.of_object({"rows": ["x" * 5000] * 150})
    assert "of 750" in nested["cut"]


def test_a_folder_that_is_not_there_is_said_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["mcp", "--data", str(tmp_path / "none")]) == 2
    assert "no data here" in capsys.readouterr().err


def test_without_the_sdk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    monkeypatch.delitem(sys.modules, "leverwatch.mcp_server", raising=False)
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    assert command_line.main(["mcp", "--data", str(folder)]) == 2
    assert "pip install 'leverwatch[mcp]'" in capsys.readouterr().err
