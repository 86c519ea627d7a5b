"""An Azure LLM inference trace in, what its requests ask for out. It says nothing of what prompts hold: each is its own.

The traces of 2023 and 2024 (github.com/Azure/AzurePublicDataset) are CSV with the columns TIMESTAMP, ContextTokens and GeneratedTokens:
a moment, in 2023 with seven decimals and without an offset, which is UTC; the tokens of the prompt and of the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from demo.traffic.asked import Asked, Row, TraceError, asked, lines, unread
from demo.traffic.mooncake import MOST_TOKENS

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, AFTER = datetime(1971, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
"""Moments from the one to before the other are taken: what nanoseconds of 64 bits hold."""


def is_of(line: bytes) -> bool:
    """Whether a line is the head of such a trace."""
    return set(COLUMNS) <= set(_cells(line))


def read(path: Path) -> Asked:
    """The requests of a trace, in order of time. Raises TraceError, OSError."""
    return asked(path, _rows(path))


def _rows(path: Path) -> Iterator[Row | str]:
    numbered = lines(path)
    number, head = next(numbered, (1, b""))
    if not is_of(head):
        msg = unread(path, number, f"a first line with the columns {', '.join(COLUMNS)} is taken", head)
        raise TraceError(msg)
    names = _cells(head)
    places = [names.index(column) for column in COLUMNS]
    for number, text in numbered:
        cells = _cells(text)
        if len(cells) != len(names):
            yield unread(path, number, f"{len(cells)} values for {len(names)} columns", text)
            continue
        at, prompt, output = (cells[place] for place in places)
        try:
            yield Row(_at_ns(at), _tokens(prompt, COLUMNS[1]), _tokens(output, COLUMNS[2]))
        except ValueError as error:
            yield unread(path, number, error, text)


def _cells(line: bytes) -> list[str]:
    return [cell.strip().strip('"') for cell in line.decode(errors="replace").split(",")]


def _at_ns(text: str) -> int:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        msg = "TIMESTAMP: a moment such as 2023-11-16 18:15:46.6805900 is taken"
        raise ValueError(msg) from error
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    if not FIRST <= at < AFTER:
        msg = f"TIMESTAMP: a moment of the years {FIRST.year} to {AFTER.year - 1} is taken"
        raise ValueError(msg)
    return (at - EPOCH) // timedelta(microseconds=1) * 1000


def _tokens(text: str, column: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= MOST_TOKENS):
        msg = f"{column}: a whole number from 1 to {MOST_TOKENS:,} is taken"
        raise ValueError(msg)
    return int(text)
