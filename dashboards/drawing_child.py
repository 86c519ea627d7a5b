"""The process that draws, a program by itself: specifications in on stdin, drawings out on stdout, one after the other, until stdin ends.

A question is a byte (`s`: a Vega-Lite specification, which becomes SVG; `p`: an SVG, which becomes PNG), the length of its text as eight
bytes, the text. An answer is a byte (`d`: drawn, `f`: it cannot be, and why), a length and what was drawn; the first says that it is ready.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import struct
import sys
from pathlib import Path
from typing import Any, BinaryIO

import vl_convert

HEAD = struct.Struct(">cQ")  # as in `easel.py`: this file imports nothing of ours, to start soon
MOST_TEXT = 2000  # characters of an expression of ours; `sql_chart` cuts what others wrote to far less
MOST_BYTES = 32 << 20
PNG_SCALE = 2.0
ORPHANED_S = 5.0  # beyond the limit that the parent holds: one that is gone no longer kills
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FIRST = {
    "data": {"values": [{"x": "2026-03-02", "y": 1}]},
    "mark": "line",
    "encoding": {"x": {"field": "x", "type": "temporal"}, "y": {"field": "y", "type": "quantitative"}},
}


def main(limit_s: float, memory_bytes: int) -> None:
    """Draws what it is asked for, each within the limit; in at most so much memory beyond what it has at the start."""
    asked, answered = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the library prints is no answer
    for what, most in ((resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NOFILE, 64), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(what, (most, most))
    svg(json.dumps(_FIRST))
    _limit_memory(memory_bytes)
    _send(answered, b"d", b"")
    while len(head := asked.read(HEAD.size)) == HEAD.size:
        kind, length = HEAD.unpack(head)
        text = asked.read(length).decode()
        signal.setitimer(signal.ITIMER_REAL, limit_s + ORPHANED_S)
        answer = _answer(kind, text)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _send(answered, *answer)


def svg(specification: str) -> str:
    """The drawing of a Vega-Lite specification. Vega escapes every text and may load nothing. Raises ValueError where it cannot be drawn.

    A character that XML has not would end the process, and texts without bounds keep it from all else for minutes.
    """
    return unspoken(vl_convert.vegalite_to_svg(_drawable(json.loads(specification)), allowed_base_urls=[]))


def unspoken(drawing: str) -> str:
    """The drawing without roles of its marks: the page says in one sentence what it shows, and a role without a name is read as nothing."""
    return re.sub(r"<[a-z][^<>]*>", lambda tag: re.sub(r' (?:role|aria-[a-z]+)="[^"]*"', "", tag[0]), drawing)


def _drawable(part: Any) -> Any:
    """The same with texts that can be drawn: cut, and without characters that XML has not."""
    if isinstance(part, str):
        return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", part if len(part) <= MOST_TEXT else f"{part[: MOST_TEXT - 1]}…")
    if isinstance(part, dict):
        return {_drawable(name): _drawable(value) for name, value in part.items()}
    return [_drawable(one) for one in part] if isinstance(part, list) else part


def _answer(kind: bytes, text: str) -> tuple[bytes, bytes]:
    try:
        drawn = svg(text).encode() if kind == b"s" else bytes(vl_convert.svg_to_png(text, scale=PNG_SCALE))
    except (ValueError, RecursionError, MemoryError) as error:
        return b"f", " ".join(str(error).split())[:300].encode(errors="replace")
    return (b"d", drawn) if len(drawn) <= MOST_BYTES else (b"f", f"the drawing has {len(drawn):,} bytes".encode())


def _limit_memory(more_bytes: int) -> None:
    """Holds data to what there is and so much more. The address space is no measure: a JavaScript engine reserves 34 GB of it."""
    told = Path("/proc/self/status").read_text(encoding="ascii")
    held_kib = next(int(line.split()[1]) for line in told.splitlines() if line.startswith("VmData:"))
    most = held_kib * 1024 + more_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _send(out: BinaryIO, kind: bytes, body: bytes) -> None:
    out.write(HEAD.pack(kind, len(body)) + body)
    out.flush()


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
