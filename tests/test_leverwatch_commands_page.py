"""The page about commands names every command, verb and option that the parsers take."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from leverwatch.commands_page import Command, commands, page

PAGE = Path(__file__).parents[1] / "docs/commands.md"


def test_the_page_is_the_one_that_the_parsers_make(update_golden: bool) -> None:
    made = page()
    if update_golden:
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made, "run `make golden`"


@pytest.mark.parametrize("command", list(commands()), ids=lambda command: command.words)
def test_every_option_of_a_command_stands_on_the_page_with_its_meaning(command: Command) -> None:
    head, *sections = PAGE.read_text(encoding="utf-8").replace("\n### ", "\n## ").split("\n## ")
    (section,) = (part for part in sections if part.startswith(f"`{command.words}`"))
    for action in command.parser._actions:
        if action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
            assert all(f"`{option}" in head + section for option in action.option_strings)
            assert action.help or action.choices, action.dest


def test_the_page_is_the_same_on_every_terminal_and_for_every_user(monkeypatch: pytest.MonkeyPatch) -> None:
    made = page()
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("USER", "somebody-else")
    monkeypatch.setenv("LOGNAME", "somebody-else")
    assert page() == made
