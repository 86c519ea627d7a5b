"""A value that JSON gave in, the word that JSON has for its kind out: what a refusal says of it."""

from __future__ import annotations

from typing import Any

_WORDS: dict[type, str] = {dict: "an object", list: "an array", str: "text", bool: "true or false", int: "a number", float: "a number"}


def json_word(value: Any) -> str:
    """`an array`, `a number`, `null`."""
    return _WORDS.get(type(value), "null")
