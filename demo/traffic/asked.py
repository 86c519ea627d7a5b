"""What public traces have in common: the lines of a file, and what its requests ask for, as columns in order of time."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
LONGEST_S = 92 * 86400.0
SHOWN = 80


class TraceError(ValueError):
    """A file is no trace that can be played; says where and why."""


class Row(NamedTuple):
    """One request of a trace. `at_ns` counts from 1970 or from the trace's own beginning; `blocks` are those of its prompt, if it says."""

    at_ns: int
    prompt_tokens: int
    output_tokens: int
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A trace's requests, in order of time. `at_s` counts from the first one, `unread` says of each line that was left out why.

    `blocks` names the blocks of each prompt, of `block_tokens` tokens each; None where the trace says nothing of what prompts hold.
    """

    at_s: npt.NDArray[np.float64]
    prompt_tokens: npt.NDArray[np.int64]
    output_tokens: npt.NDArray[np.int64]
    first_ns: int
    unread: tuple[str, ...]
    blocks: Sequence[tuple[int, ...]] | None = None
    block_tokens: int | None = None


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not empty, with their numbers, plain or gzip, without the mark of UTF-8 that it may begin with.

    Raises:
        TraceError: it is not a whole gzip file.
        OSError: it cannot be read.
    """
    with path.open("rb") as plain:
        packed = plain.read(2) == GZIP
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if text := (line.removeprefix(BOM) if number == 1 else line).strip():
                    yield number, text
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        msg = f"{path}: not a whole gzip file: {error}"
        raise TraceError(msg) from error


def asked(path: Path, rows: Iterable[Row | str], block_tokens: int | None = None) -> Asked:
    """Rows by their time; a text among them says why a line could not be read. `block_tokens` where rows name blocks. Raises TraceError."""
    at_ns, numbers, blocks, unread = [], [], [], []
    for row in rows:
        if isinstance(row, str):
            unread.append(row)
            continue
        at_ns.append(row.at_ns)
        numbers.append((row.prompt_tokens, row.output_tokens))
        if block_tokens:
            blocks.append(row.blocks)
    if not at_ns:
        msg = f"{path}: none of its lines is a request" + (f"; the first: {unread[0]}" if unread else "")
        raise TraceError(msg)
    times = np.array(at_ns, np.int64)
    order = np.argsort(times, kind="stable")
    since_first = (times[order] - times[order[0]]) / 1e9
    if since_first[-1] > LONGEST_S:
        msg = f"{path}: its requests are {since_first[-1] / 86400:,.0f} days apart; at most {LONGEST_S / 86400:.0f} days are played"
        raise TraceError(msg)
    tokens = np.array(numbers, np.int64)[order]
    named: dict[str, Any] = {"blocks": [blocks[place] for place in order.tolist()], "block_tokens": block_tokens} if block_tokens else {}
    return Asked(since_first, tokens[:, 0], tokens[:, 1], int(times[order[0]]), tuple(unread), **named)


def unread(path: Path, number: int, why: object, line: bytes) -> str:
    """Why a line is left out: where it stands, what came."""
    text = line.decode(errors="replace")
    return f"{path}:{number}: {why}; it says {text[:SHOWN]}{'...' if len(text) > SHOWN else ''}"
