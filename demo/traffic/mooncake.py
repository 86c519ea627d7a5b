"""A Mooncake trace in, what its requests ask for out, with the blocks that their prompts are made of.

Mooncake (github.com/kvcache-ai/Mooncake, FAST25-release: conversation, toolagent, synthetic) writes a JSON object a line: `timestamp` in
milliseconds from the trace's beginning, `input_length` and `output_length` in tokens, and `hash_ids`, one for each 512 tokens of the
prompt, the last one of what is left. Equal ids are equal text after equal text.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from demo.traffic.asked import LONGEST_S, Asked, Row, asked, lines, unread

BLOCK_TOKENS = 512
MOST_TOKENS = 10_000_000
MS = 1_000_000
LATEST_MS = LONGEST_S * 1000

Tokens = Annotated[int, msgspec.Meta(ge=1, le=MOST_TOKENS)]


class Line(msgspec.Struct, frozen=True):
    """What is read of a line; others' traces may say more."""

    timestamp: Annotated[float, msgspec.Meta(ge=0)]
    input_length: Tokens
    output_length: Tokens
    hash_ids: tuple[int, ...]


_LINE = msgspec.json.Decoder(Line)


def is_of(line: bytes) -> bool:
    """Whether a line is one of such a trace."""
    try:
        _LINE.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return True


def read(path: Path) -> Asked:
    """The requests of a trace, in order of time. Raises TraceError, OSError."""
    return asked(path, _rows(path), BLOCK_TOKENS)


def _rows(path: Path) -> Iterator[Row | str]:
    for number, text in lines(path):
        try:
            line = _LINE.decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            yield unread(path, number, error, text)
            continue
        if why := _wrong(line):
            yield unread(path, number, why, text)
            continue
        yield Row(round(line.timestamp * MS), line.input_length, line.output_length, line.hash_ids)


def _wrong(line: Line) -> str | None:
    """Why a line that has everything is not taken all the same."""
    if line.timestamp > LATEST_MS:
        return f"timestamp: at most {LATEST_MS:,.0f} ms is taken, {LONGEST_S / 86400:.0f} days from the trace's beginning"
    needed = -(-line.input_length // BLOCK_TOKENS)
    if len(line.hash_ids) != needed:
        return f"{len(line.hash_ids)} hash_ids for {line.input_length} tokens, where {BLOCK_TOKENS} tokens each make {needed}"
    return None


def sessions(blocks: list[tuple[int, ...]]) -> list[int]:
    """The conversation of each prompt: the first of its blocks that fewer than one prompt of a hundred holds.

    A trace does not name conversations. What very many prompts begin with, such as a system prompt, is nobody's own.
    """
    uses: dict[int, int] = {}
    for prompt in blocks:
        for block in prompt:
            uses[block] = uses.get(block, 0) + 1
    common = max(8, len(blocks) // 100)
    return [next((block for block in prompt if uses[block] < common), prompt[-1]) for prompt in blocks]
