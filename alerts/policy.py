"""Policies from files: the text of a TOML file in, a checked `Policy` out; every error names file, key and what it takes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from alerts.chain import Policy, PolicyError, Trigger
from alerts.check import check
from alerts.levers import unknown
from alerts.shape import describe, told

__all__ = ["Policy", "PolicyError", "from_table", "is_policy", "load", "parse", "shipped", "shipped_files", "shipped_text"]

MOST_CHARACTERS, MOST_DOTS = 100_000, 100  # a key of many parts takes time by their square to read: 20,000 take 9 s


def load(path: Path) -> Policy:
    """The policy of one file.

    Raises:
        PolicyError: the file cannot be read, lacks a part, or says what makes no sense; one line a problem.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: cannot be read: {error}; takes a TOML file in UTF-8"
        raise PolicyError(msg) from error
    return parse(text, str(path))


def parse(text: str, where: str) -> Policy:
    """The policy of a TOML text; `where` names it in errors.

    Raises:
        PolicyError: as `load`.
    """
    if len(text) > MOST_CHARACTERS or any(line.count(".") > MOST_DOTS for line in text.splitlines()):
        msg = f"{where}: takes at most {MOST_CHARACTERS} characters, and {MOST_DOTS} dots a line"
        raise PolicyError(msg)
    try:
        raw = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        msg = f"{where}: is not TOML: {error}"
        raise PolicyError(msg) from error
    return from_table(raw, where)


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
    hints = get_type_hints(Policy, include_extras=True)
    for key in raw:
        if key not in hints:
            msg = f"{where}: {unknown('key', key, hints)}"
            raise PolicyError(msg)
    parts: dict[str, Any] = {}
    for field in msgspec.structs.fields(Policy):
        if field.name in raw:
            parts[field.name] = _part(field.name, raw[field.name], hints[field.name], where)
        elif field.required:
            msg = f"{where}: {field.name} is missing; it takes {describe(hints[field.name])}"
            raise PolicyError(msg)
    return Policy(**parts)


def _part(key: str, value: Any, kind: Any, where: str) -> Any:
    if key == "disable_when" and isinstance(value, list) and value:
        return tuple(_part(f"{key}[{number}]", row, Trigger, where) for number, row in enumerate(value))
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        msg = f"{where}: {told(key, value, kind, str(error))}"
        raise PolicyError(msg) from error
