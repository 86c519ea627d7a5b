"""What newcomers read first agrees with the code: the Makefile's help, the changelog's newest version, the forms for issues."""

from __future__ import annotations

import re
import subprocess
from datetime import date
from pathlib import Path

import pytest
import yaml

from leverwatch.version import __version__

ROOT = Path(__file__).parent.parent
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[0-9]*.yml"))
TEXTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "deploy").rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


def phony() -> list[str]:
    return next(line for line in MAKEFILE.splitlines() if line.startswith(".PHONY:")).split()[1:]


def test_help_has_a_line_for_every_target_and_each_target_is_one() -> None:
    told = subprocess.run(["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = {line.split()[0]: line for line in told.splitlines()}
    assert sorted(lines) == sorted(phony())
    assert all(len(line.split()) > 2 for line in lines.values())
    targets = re.findall(r"^([a-z][a-z-]*):", MAKEFILE, flags=re.MULTILINE)
    assert sorted(targets) == sorted(phony())


def test_the_newest_version_of_the_changelog_is_that_of_the_code_and_has_a_day() -> None:
    heads = re.findall(r"^## \[(.+?)\](?: - (\S+))?$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert heads[0] == ("Unreleased", "")
    assert heads[1][0] == __version__
    assert [date.fromisoformat(day).isoformat() for _, day in heads[1:]] == [day for _, day in heads[1:]]


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_that_a_text_links_to_is_there(text: Path) -> None:
    prose = re.sub(r"`[^`\n]*`", "", text.read_text(encoding="utf-8"))
    assert [to for to in LINK.findall(prose) if not (text.parent / to).exists()] == []


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_a_form_asks_for_what_an_answer_takes(form: Path) -> None:
    read = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert read.keys() == {"name", "description", "labels", "body"}
    ids = [field["id"] for field in read["body"]]
    assert len(set(ids)) == len(ids)
    assert all(field["attributes"]["label"] for field in read["body"])
    assert any("version" in field["attributes"]["label"].lower() for field in read["body"])


def test_forms_lead_to_the_doctor_and_the_sql() -> None:
    words = {form.stem: form.read_text(encoding="utf-8") for form in FORMS}
    assert "leverwatch doctor" in words["1-bug"]
    assert "leverwatch sql" in words["2-wrong-number"]
    assert "docs/engines.md" in words["3-engine"]
