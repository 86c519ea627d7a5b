"""`leverwatch policy VERB` as it is typed: what is printed, and the exit status."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from judged_history import BAD, GOOD, NAME, SEGMENT, play, text

from alerts.policy import shipped, shipped_text
from leverwatch import backtest_api, policies_api
from leverwatch.backtesting import texts
from leverwatch.cli.main import main
from leverwatch.cli.policy_backtest_text import span
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from leverwatch.local import Local
from leverwatch.policy_sources import sources
from leverwatch.remote import Remote
from queries.store import Store

FOLDER = Path(str(resources.files("alerts") / "policies"))
LABELS = "lever,segment,from,until,note\nspeculation,{},%s,,drafts went bad\n"


def command(*words: str | Path) -> int:
    return main(["policy", *map(str, words)])


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineRoom]:
    """A store in which harm begins with block 4."""
    path = tmp_path_factory.mktemp("data")
    store = Store(path)
    play(store, [GOOD] * 3 + [BAD] * 4)
    store.close()
    opened = EngineRoom(path, Config())
    yield opened
    opened.close()


class Kept(Local):
    """Stays open for the next command."""

    def close(self) -> None:
        """The room is the module's."""


@pytest.fixture
def folder(room: EngineRoom, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The room's folder, which commands find open."""
    monkeypatch.setattr("leverwatch.cli.common.connect", lambda *_, **__: Kept(room))
    return room.folder


@pytest.fixture
def loose(tmp_path: Path) -> Path:
    """The shipped policy, with more requests before it says anything."""
    file = tmp_path / "loose.toml"
    file.write_text(text(minimum_requests="500", version='"9"'), encoding="utf-8")
    return file


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """An operator's folder: one policy that overrides a shipped one, one beside them, and cases that are none."""
    path = tmp_path / "policies"
    path.mkdir()
    (path / "a.toml").write_text(text(shadow="true"), encoding="utf-8")
    (path / "b.toml").write_text(text(name='"mine"'), encoding="utf-8")
    (path / "b.cases.toml").write_text("[[cases]]\n", encoding="utf-8")
    return path


def test_list_names_every_policy_with_its_actions_and_where_it_is_from(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("list", "--policies", own) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["policy", "lever", "version", "owner", "severity", "shadow", "triggers", "from"]
    assert len(lines) == 1 + len(shipped()) + 1
    assert command("list", "--policies", own, "--format", "json") == 0
    rows = {row["policy"]: row for row in json.loads(capsys.readouterr().out)}
    assert (rows[NAME]["shadow"], rows[NAME]["from"]) == (True, f"{own / 'a.toml'}, overrides the shipped one")
    assert rows["mine"]["from"] == str(own / "b.toml")
    assert {"kind": "harm", "metric": "net_itl_gain", "action": "disable", "severity": "warning"} in rows["mine"]["triggers"]
    assert {row["from"] for name, row in rows.items() if name not in (NAME, "mine")} <= {"shipped"}


def test_the_folder_of_the_configuration_is_listed(own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "leverwatch.toml").write_text(f'[alerts]\npolicies = "{own}"\n', encoding="utf-8")
    for words in (("--data", tmp_path), ("--config", tmp_path / "leverwatch.toml")):
        assert command("list", *words) == 0
        assert "mine" in capsys.readouterr().out


def test_a_folder_that_is_not_there_is_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("list", "--policies", tmp_path / "nowhere") == 2
    assert "no such folder" in capsys.readouterr().err


def test_show_prints_the_file_or_every_key(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("show", NAME) == 0
    assert capsys.readouterr().out == shipped_text(NAME)
    assert command("show", NAME, "--policies", own) == 0
    assert "shadow = true" in capsys.readouterr().out
    assert command("show", NAME, "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["stale_after_s"] == 3600.0


def test_show_of_an_unknown_name_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("show", "speculation") == 2
    assert "did you mean 'speculation-net-itl'" in capsys.readouterr().err


def test_show_prints_the_cases_beside_a_policy(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("show", NAME, "--cases") == 0
    assert capsys.readouterr().out.startswith("# Small inputs of the policy beside this file")
    assert command("show", "mine", "--cases", "--policies", own) == 0
    assert capsys.readouterr().out == "[[cases]]\n"
    assert command("show", NAME, "--cases", "--policies", own) == 2
    assert "a.cases.toml: there are no cases beside the policy; write cases there" in capsys.readouterr().err


def test_metrics_lists_what_a_policy_may_name_with_its_unit_range_and_what_it_is_held_against(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("metrics", "--format", "json") == 0
    rows = {row["metric"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["net_itl_gain"] == {
        "metric": "net_itl_gain", "unit": "ratio", "better": "higher", "from": -1.0, "to": 1.0, "held_against": "control, by evidence"
    }  # fmt: skip
    assert rows["queue_s"]["held_against"] == "control, by its interval"
    assert rows["acceptance_length"]["held_against"] == "threshold"
    assert "chunk_gap_s" not in rows


def test_a_server_lists_and_shows_what_it_judges_by(
    own: Path, room: EngineRoom, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    application = FastAPI()
    application.include_router(policies_api.router(sources(own)))
    monkeypatch.setattr("leverwatch.cli.common.connect", lambda *_, **__: through(application))
    assert command("list", "--url", "http://server", "--format", "json") == 0
    rows = {row["policy"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["mine"]["from"] == str(own / "b.toml")
    assert command("list", "--url", "http://server") == 0
    assert "mine" in capsys.readouterr().out
    assert command("show", "mine", "--url", "http://server") == 0
    assert capsys.readouterr().out == (own / "b.toml").read_text(encoding="utf-8")
    assert [row["policy"] for row in Local(room).policies()] == [one.name for one in shipped()]


@pytest.mark.parametrize("words", [("list", "--nope"), ("check", "--nope", "x"), ("backtest", "x", "--sinc", "7d", "more", "--nope")])
def test_what_a_command_does_not_take_is_told_with_its_own_usage(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command(*words)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith(f"usage: leverwatch policy {words[0]} ")
    assert "unrecognized arguments: " in told


def test_two_policies_of_one_name_in_a_folder_are_refused(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own / "c.toml").write_text(text(name='"mine"'), encoding="utf-8")
    assert command("list", "--policies", own) == 2
    assert f"{own / 'c.toml'}: a second policy named 'mine', after {own / 'b.toml'}" in capsys.readouterr().err
    assert command("check", own) == 1
    assert "c.toml: name: a second policy named 'mine'" in capsys.readouterr().err


def test_check_of_a_folder_checks_what_a_server_would_read(own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("check", own) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    (tmp_path / "none").mkdir()
    assert command("check", tmp_path / "none") == 2
    assert command("check", own / "b.cases.toml") == 2
    assert "b.cases.toml: holds cases of b.toml, which `leverwatch policy test` plays" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "to", "said"),
    [
        ('kind = "harm"', "kind = harm", "is not TOML: Invalid value (at line 52, column 8): 'kind = harm'"),
        ("[[disable_when]]", "[disable_when]", "each table of a list is written [[disable_when]]"),
        (
            "relative_to_control = 1.25",
            "relative_to_control = 1.25\nthreshold = 1",
            "exactly one of threshold and relative_to_control\n",
        ),
        (
            "for_blocks = 3",
            "for_blocks = 3.5",
            "for_blocks: Expected `int`, got 3.5; takes a whole number from 1 to 288",
        ),
        ("threshold = -0.02", 'threshold = "-2%"', "threshold: Expected `float | null`, got '-2%'; takes a number"),
        ('unit = "ratio"', 'unit = "%"', "takes 'ratio' for net_itl_gain, got '%'"),
    ],
)
def test_what_a_stranger_writes_wrong_is_told_with_what_came(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str, to: str, said: str
) -> None:
    file = tmp_path / "x.toml"
    file.write_text(shipped_text(NAME).replace(change, to), encoding="utf-8")
    assert command("check", file) == 1
    assert said in capsys.readouterr().err


def test_a_mark_that_editors_put_in_front_of_a_file_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(shipped_text(NAME), encoding="utf-8-sig")
    (tmp_path / "x.cases.toml").write_text((FOLDER / "speculation.cases.toml").read_text(encoding="utf-8"), encoding="utf-8-sig")
    assert command("check", tmp_path / "x.toml") == command("test", tmp_path / "x.toml") == 0


def test_every_key_that_lacks_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.toml").write_text("", encoding="utf-8")
    assert command("check", tmp_path / "x.toml") == 1
    assert len(capsys.readouterr().err.splitlines()) == 13


def test_check_answers_yes_no_and_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text(shipped_text(NAME), encoding="utf-8")
    bad.write_text(shipped_text(NAME).replace('owner = "serving"\n', ""), encoding="utf-8")
    assert command("check", good) == 0
    assert command("check", good, bad) == 1
    assert f"{bad}: owner is missing; it takes one line of text" in capsys.readouterr().err
    assert command("check", bad, tmp_path / "nowhere.toml") == 2


def test_test_answers_yes_no_and_that_there_are_no_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("test", NAME) == 0
    assert "cases hold" in capsys.readouterr().out
    mine = tmp_path / "mine.toml"
    mine.write_text(text(), encoding="utf-8")
    case = '[[cases]]\nname = "a"\nplay = [{ effects.net_itl_s = { gain = [0.1, 0.2] } }]\nexpect = [{ verdict = "disable" }]\n'
    (tmp_path / "mine.cases.toml").write_text(case, encoding="utf-8")
    assert command("test", mine) == 1
    assert "block 1: expected verdict 'disable', got 'keep'" in capsys.readouterr().out
    (tmp_path / "mine.cases.toml").unlink()
    assert command("test", mine) == 2


def test_diff_answers_same_differs_and_cannot_be_read(loose: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("diff", NAME, NAME) == 0
    assert "nothing differs" in capsys.readouterr().out
    assert command("diff", NAME, loose) == 1
    assert "minimum_requests: 100 requests -> 500 requests (loosens)" in capsys.readouterr().out
    assert command("diff", NAME, "nobody") == 2
    assert command("diff", NAME, loose, "--format", "json") == 1
    assert {row["key"] for row in json.loads(capsys.readouterr().out)["differences"]} == {"minimum_requests", "version"}


def test_diff_over_history_tells_what_is_judged_otherwise(folder: Path, loose: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("diff", NAME, loose, "--data", folder) == 1
    out = capsys.readouterr().out
    assert f"speculation {SEGMENT}: disable 2026-03-04T00:30Z to now -> nothing" in out
    assert "recommendations: 1 -> 0, otherwise: 1" in out
    assert command("diff", NAME, loose, "--data", folder, "--format", "json") == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["otherwise"][0]["old"]["action"], told["otherwise"][0]["new"]) == ("disable", None)


def test_backtest_as_json_is_a_list_of_changes_of_verdict(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("backtest", NAME, "--data", folder, "--format", "json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["verdict"], row["decided_at"]) for row in rows] == [("keep", "2026-03-04T00:05:00Z"), ("disable", "2026-03-04T00:30:00Z")]
    assert set(rows[0]) == {"policy", "lever", "segment", "verdict", "action", "decided_at", "reason"}
    assert rows[0]["segment"] == json.loads(SEGMENT)


def test_backtest_answers_one_where_something_fired_falsely(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "labels.csv"
    file.write_text(LABELS % "2026-03-04T00:16", encoding="utf-8")
    assert command("backtest", NAME, "--data", folder, "--labels", file) == 0
    assert "14 min after (drafts went bad)" in capsys.readouterr().out
    file.write_text(LABELS % "2026-03-05", encoding="utf-8")
    assert command("backtest", NAME, "--data", folder, "--labels", file) == 1
    out = capsys.readouterr().out
    assert "FALSE" in out
    assert "false by label: 1, " in out


def test_backtest_fails_on_a_fire_or_on_a_miss_where_that_is_asked(folder: Path, loose: Path, tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text(LABELS % "2026-03-04T00:16", encoding="utf-8")
    assert command("backtest", NAME, "--data", folder, "--fail-on-fire") == 1
    assert command("backtest", loose, "--data", folder, "--fail-on-fire") == 0
    assert command("backtest", loose, "--data", folder, "--labels", file) == 0
    assert command("backtest", loose, "--data", folder, "--labels", file, "--fail-on-miss") == 1


def test_backtest_says_what_it_could_not_tell(folder: Path, loose: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("backtest", loose, "--data", folder) == 0
    out = capsys.readouterr().out
    assert "No policy would have recommended anything." in out
    assert f"{NAME} {SEGMENT}: nothing could be judged in 7 of 7 blocks, mostly for this reason: " in out
    assert "(few_requests)" in out


def test_backtest_without_history_cannot_tell(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("backtest", NAME, "--data", folder, "--since", "2030-01-01") == 3
    assert command("backtest", "disaggregation-net-itl", "--data", folder, "--format", "json") == 3
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((NAME, NAME), f"a second policy named '{NAME}'"),
        ((NAME, "--since", "2026-03-05", "--until", "2026-03-04"), "is not before until"),
        ((NAME, "--since", "yesterday"), "time 'yesterday'"),
        (("nobody",), "nobody: is no file, and policy 'nobody' is unknown"),
        (("nobody.toml",), "nobody.toml: cannot be read"),
    ],
)
def test_a_backtest_that_cannot_be_is_wrong_use(
    folder: Path, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("backtest", *words, "--data", folder) == 2
    assert said in capsys.readouterr().err


def test_an_age_counts_back_from_the_newest_effect(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("backtest", NAME, "--data", folder, "--since", "10m", "--format", "json") == 0
    assert [row["decided_at"] for row in json.loads(capsys.readouterr().out)] == ["2026-03-04T00:30:00Z"]


def test_a_server_says_what_a_folder_says(room: EngineRoom) -> None:
    application = FastAPI()
    application.include_router(backtest_api.router(room))
    remote = through(application)
    found = remote.backtest(NAME, "1d")
    assert found == Local(room).backtest(NAME, "1d")
    assert found.recommendations
    bad = remote.http.post("/api/backtest", content=b'{"policies": []}')
    assert (bad.status_code, bad.json()["error"]["code"]) == (400, "invalid")
    assert remote.http.post("/api/backtest", content=b"no").json()["error"]["hint"].startswith("send a JSON object {policies")


def through(application: FastAPI) -> Remote:
    """A server's routes, asked as a server is."""

    def answer(request: httpx.Request) -> httpx.Response:
        async def ask() -> httpx.Response:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://server") as client:
                return await client.request(request.method, request.url, content=request.content, headers=request.headers)

        return asyncio.run(ask())

    remote = Remote("http://server")
    remote.http = httpx.Client(base_url="http://server", transport=httpx.MockTransport(lambda request: _plain(answer(request))))
    return remote


def _plain(answer: httpx.Response) -> httpx.Response:
    return httpx.Response(answer.status_code, content=answer.content, headers={"content-type": answer.headers["content-type"]})


def test_the_texts_of_policies_are_files_or_shipped_names(loose: Path) -> None:
    assert [one.where for one in texts([NAME, loose])] == [NAME, str(loose)]
    assert texts(loose)[0].text == loose.read_text(encoding="utf-8")


@pytest.mark.parametrize(("seconds", "said"), [(0, "0 min"), (1500, "25 min"), (-12_000, "3 h 20 min"), (187_200, "2 d 4 h")])
def test_a_span_of_time_is_told_in_two_units_at_most(seconds: float, said: str) -> None:
    assert span(seconds) == said
