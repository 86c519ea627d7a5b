"""Texts of a URL or a command in, values of a statement's parameters out; and which parameters a statement has."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from queries.report import moment

# What may hide a `$name`: strings, quoted names, comments, and strings between $$ or $tag$.
_TOKENS = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$|\$(?P<name>[A-Za-z_]\w*)", re.DOTALL
)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")


class ParameterError(ValueError):
    """A parameter's value cannot be used, or there is no such parameter; says which are taken."""


@dataclass(frozen=True)
class Parameter:
    """One `$name` of a statement. `default` is text as a reader would type it, None for null."""

    name: str
    kind: str = "any"
    default: str | None = None
    what: str = ""

    def value(self, text: str | None, now: datetime) -> Any:
        """What the statement is given: of no text or an empty one, the default. Raises ParameterError."""
        said = text if text not in (None, "") else self.default
        if said is None:
            return None
        try:
            return KINDS[self.kind](said, now)
        except ValueError as error:
            msg = f"${self.name} = {said[:80]!r}: {_TAKEN[self.kind]}"
            raise ParameterError(msg) from error


def _moment(text: str, now: datetime) -> str:
    return (now if text == "now" else moment(text, now)).isoformat()


def _any(text: str, _now: datetime) -> Any:
    """A number, true, false, or null as such; what stands in quotes without them; all else is text."""
    if text in ("true", "false", "null") or _NUMBER.fullmatch(text):
        return json.loads(text)
    is_quoted = len(text) > 1 and text[0] == text[-1] == "'"
    return text[1:-1].replace("''", "'") if is_quoted else text


def typed(value: Any) -> str:
    """What a reader would type for a parameter of no kind to have this value, a number or text."""
    if not isinstance(value, str):
        return json.dumps(value)
    is_plain = value != "" and _NUMBER.fullmatch(value) is None and value not in ("true", "false", "null") and not value.startswith("'")
    return value if is_plain else "'" + value.replace("'", "''") + "'"


KINDS: dict[str, Callable[[str, datetime], Any]] = {
    "moment": _moment,
    "text": lambda text, _now: text,
    "number": lambda text, _now: float(text),
    "integer": lambda text, _now: int(text),
    "any": _any,
}
_TAKEN = {
    "moment": "a time (ISO 8601, without offset in UTC), an age such as 24h or 7d, or now is taken",
    "text": "text is taken",
    "number": "a number is taken",
    "integer": "a whole number is taken",
    "any": "a number, true, false, null or text is taken",
}


def names(sql: str) -> list[str]:
    """The names of a statement's parameters, each once, as they come; those in strings and comments are none."""
    return list(dict.fromkeys(match["name"] for match in _TOKENS.finditer(sql) if match["name"]))


def values(parameters: Sequence[Parameter], texts: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """Every parameter's value. Raises ParameterError for a name that is not among them, or a text that is no value."""
    taken = {parameter.name for parameter in parameters}
    for name in texts:
        if name not in taken:
            msg = f"parameter ${name[:80]} is unknown; known: {', '.join(sorted(taken)) or 'none'}"
            raise ParameterError(msg)
    return {parameter.name: parameter.value(texts.get(parameter.name), now) for parameter in parameters}
