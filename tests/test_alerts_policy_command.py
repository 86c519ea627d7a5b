from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from alerts.policy import shipped_text
from leverwatch.cli import policy


def command(*words: str) -> int:
    parser = argparse.ArgumentParser()
    policy.add(parser.add_subparsers())
    args = parser.parse_args(["policy", *words])
    return int(args.run(args))


def test_list_names_every_shipped_policy(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["policy", "lever", "version", "owner"]
    assert lines[1].split() == ["speculation-net-itl", "speculation", "1", "serving"]
    assert command("list", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)[0]["policy"] == "speculation-net-itl"


def test_show_prints_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("show", "speculation-net-itl") == 0
    assert capsys.readouterr().out == shipped_text("speculation-net-itl")


def test_show_of_an_unknown_name_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("show", "speculation") == 2
    assert "did you mean 'speculation-net-itl'" in capsys.readouterr().err


def test_check_answers_yes_no_and_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text(shipped_text("speculation-net-itl"), encoding="utf-8")
    bad.write_text(shipped_text("speculation-net-itl").replace('owner = "serving"\n', ""), encoding="utf-8")
    assert command("check", str(good)) == 0
    assert command("check", str(good), str(bad)) == 1
    assert f"{bad}: owner is missing; it takes text" in capsys.readouterr().err
    assert command("check", str(bad), str(tmp_path / "nowhere.toml")) == 2
