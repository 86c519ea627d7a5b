"""Policies from files: the text of a TOML file in, a checked `Policy` out; every error names file, key and what it takes."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from alerts.chain import Policy, PolicyError, Trigger
from alerts.check import check
from alerts.levers import unknown
from alerts.shape import describe, not_finite, shown, told

__all__ = ["Policy", "PolicyError", "from_table", "is_policy", "load", "parse", "shipped", "shipped_files", "shipped_text"]

_LINE, _TWICE = re.compile(r"\(at line (\d+), "), re.compile(r"Cannot declare \('(\w+)',\) twice")
MOST_CHARACTERS, MOST_DOTS = 100_000, 100  # a key of many parts takes time by their square to read: 20,000 take 9 s


class TomlError(ValueError):
    """A text that is no table: says where, or what of it is no number."""


def load(path: Path) -> Policy:
    """The policy of one file.

    Raises:
        PolicyError: the file cannot be read, lacks a part, or says what makes no sense; one line a problem.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # editors of some systems put a mark in front
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: cannot be read: {error}; takes a TOML file in UTF-8"
        raise PolicyError(msg) from error
    return parse(text, str(path))


def parse(text: str, where: str) -> Policy:
    """The policy of a TOML text; `where` names it in errors.

    Raises:
        PolicyError: as `load`.
    """
    try:
        return from_table(table(text), where)
    except TomlError as error:
        msg = f"{where}: {error}"
        raise PolicyError(msg) from error


def table(text: str) -> dict[str, Any]:
    """The table of a TOML text that takes no long time to read, and whose numbers are finite.

    Raises:
        TomlError: it is none.
    """
    if len(text) > MOST_CHARACTERS or any(line.count(".") > MOST_DOTS for line in text.splitlines()):
        msg = f"takes at most {MOST_CHARACTERS} characters, and {MOST_DOTS} dots a line"
        raise TomlError(msg)
    try:
        raw = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        msg = f"is not TOML: {error}{_hint(str(error), text)}"
        raise TomlError(msg) from error
    for key, number in not_finite("", raw):
        msg = f"{key} takes a finite number, got {number}"
        raise TomlError(msg)
    return raw


def _hint(error: str, text: str) -> str:
    """The line that an error names, and how a list of tables is written where one was written as a table."""
    twice = _TWICE.search(error)
    if twice:
        return f"; each table of a list is written [[{twice[1]}]]"
    line, lines = _LINE.search(error), text.splitlines()
    number = int(line[1]) if line else 0
    return f": {shown(lines[number - 1].strip())}" if 0 < number <= len(lines) else ""


def from_table(raw: dict[str, Any], where: str) -> Policy:
    """The policy of a TOML text that is read already.

    Raises:
        PolicyError: as `load`.
    """
    policy = _convert(raw, where)
    check(policy, where)
    return policy


def shipped() -> list[Policy]:
    """The policies that come with Leverwatch, by file name."""
    return [parse(text, name) for name, text in shipped_files()]


def shipped_text(policy: str) -> str:
    """The TOML text of a shipped policy.

    Raises:
        KeyError: no such policy, with the known ones.
    """
    texts = {parse(text, name).name: text for name, text in shipped_files()}
    if policy not in texts:
        raise KeyError(unknown("policy", policy, texts))
    return texts[policy]


def is_policy(file_name: str) -> bool:
    """Whether a file of a folder of policies is one: `x.cases.toml` has the cases of `x.toml`."""
    return file_name.endswith(".toml") and not file_name.endswith(".cases.toml")


def shipped_files() -> Iterator[tuple[str, str]]:
    """The name and the TOML text of each file that comes with Leverwatch."""
    folder = resources.files("alerts") / "policies"
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        if is_policy(entry.name):
            yield f"alerts/policies/{entry.name}", entry.read_text(encoding="utf-8")


def _convert(raw: dict[str, Any], where: str) -> Policy:
    """Part by part, so that an error can say which part and what it takes."""
    hints, required = _parts()
    for key in raw:
        if key not in hints:
            msg = f"{where}: {unknown('key', key, hints)}"
            raise PolicyError(msg)
    missing = [name for name in required if name not in raw]
    if missing:
        raise PolicyError("\n".join(f"{where}: {name} is missing; it takes {describe(hints[name])}" for name in missing))
    return Policy(**{name: _part(name, raw[name], kind, where) for name, kind in hints.items() if name in raw})


@functools.cache
def _parts() -> tuple[dict[str, Any], tuple[str, ...]]:
    """The parts of a policy with what each takes, and those that it must have. To evaluate the hints takes 1.4 ms each time."""
    hints, fields = get_type_hints(Policy, include_extras=True), msgspec.structs.fields(Policy)
    return {field.name: hints[field.name] for field in fields}, tuple(field.name for field in fields if field.required)


def _part(key: str, value: Any, kind: Any, where: str) -> Any:
    if key == "disable_when" and isinstance(value, list) and value:
        return tuple(_part(f"{key}[{number}]", row, Trigger, where) for number, row in enumerate(value))
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        msg = f"{where}: {told(key, value, kind, str(error))}"
        raise PolicyError(msg) from error
