"""What the documents tell readers to type works: commands run beside a served store and answer as is shown, SQL and Python run on it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import docs_blocks
import docs_sandbox
import docs_units
import docs_unrun
import pytest
from docs_sandbox import Place, Ran
from docs_units import Unit

import leverwatch

PAGES = [page for page in docs_blocks.pages() if any(block.language in ("sh", "console") for block in docs_blocks.blocks(page))]
WITH_CODE = [block for block in docs_blocks.of("sql", "python") if not block.why_not]
UNITS = [unit for block in docs_blocks.of("sh", "console") for unit in docs_units.units(block)]
ANYWHERE = Place(docs_blocks.ROOT, "http://127.0.0.1:1")  # where nothing is run: what a command would reach is asked of it
# What `$name` in a statement stands for.
VALUES = {"model": "chat-70b", "lever": "speculation", "tenant": "acme", "since": "2026-01-01", "until": "2027-01-01"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with docs_sandbox.served(tmp_path_factory.mktemp("docs")) as place:
        yield place


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run_and_answer_as_it_shows(page: str, served: Place) -> None:
    place = docs_sandbox.page_of(served, page)
    wrong = []
    for block in docs_blocks.blocks(page):
        for unit in docs_units.units(block) if block.language in ("sh", "console") else ():
            if not docs_unrun.why_not(unit.text) and not ANYWHERE.objection(unit):
                wrong += _wrong(unit, place.run(unit))
    assert not wrong, "\n".join(wrong)


def _wrong(unit: Unit, ran: Ran) -> Iterator[str]:
    if ran.status not in docs_unrun.right(unit.text):
        yield f"{unit.place}: {unit.text}: status {ran.status}: {ran.err[-300:]}"
    elif unit.shown and docs_unrun.is_compared(unit.text) and shape(unit.shown) not in {shape(line) for line in ran.out.splitlines()}:
        yield f"{unit.place}: {unit.text}: shows {unit.shown!r}, and what came begins {ran.out[:300]!r}"


def shape(line: str) -> str:
    """What of a line of output is the same on other data: a head of columns as it is, of sentences and values the first word."""
    words = line.split()
    is_head = bool(words) and all(re.fullmatch(r"[a-z_][a-z0-9_,.]*", word) for word in words)
    return " ".join(words) if is_head else re.sub(r"[0-9]+", "#", words[0] if words else "")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.place)
def test_a_command_that_is_run_reaches_nothing_but_its_folder_and_server(unit: Unit) -> None:
    if docs_unrun.why_not(unit.text):
        return
    assert not (said := ANYWHERE.objection(unit)), f"{unit.place}: {said}: {unit.text}"


@pytest.mark.parametrize("block", WITH_CODE, ids=lambda block: block.place)
def test_sql_and_python_of_the_pages_run(block: docs_blocks.Block, served: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    if block.language == "sql":
        with leverwatch.connect(served.url) as asked:
            for statement in filter(str.strip, re.split(r";\s*\n", block.text)):
                asked.sql(statement, {name: VALUES[name] for name in re.findall(r"\$(\w+)", statement)})
        return
    with leverwatch.connect(served.url) as connection:
        monkeypatch.setattr(leverwatch, "connect", lambda *_, **__: connection)
        monkeypatch.chdir(served.folder)
        names: dict[str, Any] = {"leverwatch": leverwatch}
        exec(compile(block.text, block.place, "exec"), names)  # noqa: S102
