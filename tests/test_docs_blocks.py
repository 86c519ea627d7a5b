"""Blocks of the documents are in a language that is known, and readable as that; commands and options that pages name are there."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import docs_blocks
import docs_units
import pytest
import yaml
from docs_blocks import Block

from alerts import policy, policy_cases
from leverwatch import config
from leverwatch.cli.main import COMMANDS
from leverwatch.commands_page import commands

OPTIONS = {one.words: {word for action in one.parser._actions for word in action.option_strings} for one in commands()}
ALWAYS = {"--help", "-h", "--version"}
_CODE = re.compile(r"`([^`\n]+)`")


@pytest.mark.parametrize("page", docs_blocks.pages())
def test_every_block_is_fenced_and_names_a_language_that_is_known(page: str) -> None:
    wrong = [block.place for block in docs_blocks.blocks(page) if not block.is_fenced or block.language not in docs_blocks.LANGUAGES]
    assert wrong == [], "fence it, and name one of " + ", ".join(docs_blocks.LANGUAGES)


@pytest.mark.parametrize("block", docs_blocks.of("sh"), ids=lambda block: block.place)
def test_a_shell_block_parses_as_bash(block: Block) -> None:
    assert docs_units.parses(re.sub(r"<[^<>\n]+>", "WORD", block.text))


@pytest.mark.parametrize("block", docs_blocks.of("console"), ids=lambda block: block.place)
def test_a_block_with_prompts_has_commands_that_parse(block: Block) -> None:
    found = docs_units.units(block)
    assert found, "a console block without a line that begins with `$ `"
    assert [unit.text for unit in found if not docs_units.parses(unit.text)] == []


@pytest.mark.parametrize("block", docs_blocks.of("python"), ids=lambda block: block.place)
def test_a_python_block_parses(block: Block) -> None:
    ast.parse(block.text, block.place)


@pytest.mark.parametrize("block", docs_blocks.of("json", "yaml"), ids=lambda block: block.place)
def test_a_json_or_yaml_block_can_be_read(block: Block) -> None:
    assert json.loads(block.text) if block.language == "json" else list(yaml.safe_load_all(block.text))


@pytest.mark.parametrize("block", docs_blocks.of("toml"), ids=lambda block: block.place)
def test_a_toml_block_is_taken_by_what_reads_it(block: Block, tmp_path: Path) -> None:
    keys = set(tomllib.loads(block.text))
    if block.why_not:
        return
    if keys & {"cases", "usual"}:
        assert policy_cases.parse(block.text, block.place)
    elif "lever" in keys:
        assert policy.parse(block.text, block.place)
    else:
        (tmp_path / "leverwatch.toml").write_text(block.text)
        assert config.read(None, tmp_path, {})


@pytest.mark.parametrize("page", docs_blocks.pages())
def test_a_page_names_only_commands_and_options_that_there_are(page: str) -> None:
    if not page.startswith(("CHANGELOG", "docs/adr/")):  # which tell of commands that are no more
        assert [wrong for line in _command_lines(page) for wrong in _unknown(line)] == []


def _command_lines(page: str) -> Iterator[str]:
    """What a page tells to type, in blocks and within lines: from `leverwatch` to the end of the command."""
    spans = [*_CODE.findall(docs_blocks.text_of(page)), *(line for block in docs_blocks.blocks(page) for line in _lines(block))]
    for text in spans:
        yield from re.findall(r"(?:^|[\s$/|(])leverwatch ([a-z][^|;&>#`]*)", text)


def _lines(block: Block) -> list[str]:
    return block.text.replace("\\\n", " ").splitlines() if block.language in ("sh", "console") else []


def _unknown(line: str) -> Iterator[str]:
    """What of a command's words its parser does not know."""
    words = _split(line)
    if words[0] not in COMMANDS:
        yield f"leverwatch {line}: no such command"
        return
    verb = f"leverwatch {' '.join(words[:2])}"
    known = OPTIONS[verb] if verb in OPTIONS else _below(f"leverwatch {words[0]}")
    given = (word.partition("=")[0].rstrip(",.:") for word in words if word.startswith("--"))
    yield from (f"leverwatch {line}: {word}" for word in given if word not in known | ALWAYS)


def _below(words: str) -> set[str]:
    """The options of a command and, where a page names no verb, of its verbs."""
    return {option for name, options in OPTIONS.items() if f"{name} ".startswith(f"{words} ") for option in options}


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:  # cut off within quotes
        return line.split()


def test_an_option_that_no_parser_takes_is_found() -> None:
    assert list(_unknown("report --by model --sinse 2h")) == ["leverwatch report --by model --sinse 2h: --sinse"]
    assert list(_unknown("reprt")) == ["leverwatch reprt: no such command"]
    assert list(_unknown("policy backtest x --since 7d")) == []
    assert list(_unknown("policy test x --since 7d")) == ["leverwatch policy test x --since 7d: --since"]
