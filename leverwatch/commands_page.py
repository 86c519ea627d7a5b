"""The commands' argument parsers in, the page that lists them out: `docs/commands.md`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

from leverwatch.cli import common
from leverwatch.cli.main import parser

HEAD = """# Commands

Made from the code by `make golden`. Every command answers `--help`. The exit status is 0 where it is done, 1 where the answer is no, 2 for
wrong use or input, 3 where it cannot be told. An error is one line on standard error, and so is what is said beside an answer.

"""
WHERE = """Those that say *works on a store* take one of `--data` and `--url`, and where its server asks for them a token and its authority:
"""


class Command(NamedTuple):
    """A command or a verb of one: its words, what it does, and what takes its arguments."""

    words: str
    told: str
    parser: argparse.ArgumentParser


def page() -> str:
    """The whole page as Markdown."""
    shared = argparse.ArgumentParser(add_help=False)
    common.add_data(shared)
    usual = _rows(shared)
    return HEAD + "\n".join([WHERE, *_table(usual), *(line for command in commands() for line in _section(command, usual))]) + "\n"


def commands() -> Iterator[Command]:
    """Each command, and each verb of one, in the order of the usage."""
    yield from _below("leverwatch", parser())


def _below(words: str, above: argparse.ArgumentParser) -> Iterator[Command]:
    """The commands that a parser has, and theirs."""
    for action in above._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, one in action.choices.items():
                yield Command(f"{words} {name}", one.description or "", one)
                yield from _below(f"{words} {name}", one)


def _section(command: Command, usual: list[tuple[str, str]]) -> Iterator[str]:
    """A command's heading, what it does, and its arguments without those that most take."""
    rows = _rows(command.parser)
    works_on_a_store = set(usual) <= set(rows)
    first, _, more = command.told.partition("\n\n")
    yield from ("", f"{'#' * len(command.words.split())} `{command.words}`", "")
    yield _plain(first) + (" *Works on a store.*" if works_on_a_store else "")
    if more:
        yield from ("", "```text", *more.rstrip().splitlines(), "```")
    if own := [row for row in rows if not (works_on_a_store and row in usual)]:
        yield from ("", *_table(own))


def _rows(one: argparse.ArgumentParser) -> list[tuple[str, str]]:
    """One row per argument: how it is written, what it means."""
    taken = (action for action in one._actions if not isinstance(action, argparse._HelpAction | argparse._SubParsersAction))
    return [(_written(action), _meaning(action)) for action in taken if action.help != argparse.SUPPRESS]


def _written(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else str(action.metavar or ("" if action.choices else action.dest.upper()))
    if not action.option_strings:
        return f"`{value or action.dest}`" + {"*": " ...", "+": " ...", "?": ", or none"}.get(str(action.nargs), "")
    return ", ".join(f"`{option}{' ' + value if value else ''}`" for option in action.option_strings).replace("|", "\\|")


def _meaning(action: argparse.Action) -> str:
    told = _plain((action.help or "") % {**vars(action), "prog": "leverwatch"}) if action.help else ""
    choices = "one of " + ", ".join(f"`{choice}`" for choice in action.choices) if action.choices else ""
    needed = "needed" if action.required and action.option_strings else ""
    return "; ".join(part for part in (told, choices, needed) if part).replace("|", "\\|")


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;")


def _table(rows: list[tuple[str, str]]) -> list[str]:
    return ["| argument | meaning |", "|---|---|", *(f"| {written} | {meaning} |" for written, meaning in rows)]
