"""A specification or an SVG in, a drawing out, by a child process that is kept; one that hangs or ends is followed by a fresh one."""

from __future__ import annotations

import struct
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from queries import child_output, children

PROGRAM = str(Path(__file__).with_name("drawing_child.py"))
MOST_BYTES = 64 << 20  # of an answer; the child gives no drawing beyond half of it
_HEAD = struct.Struct(">cQ")


class DrawingError(RuntimeError):
    """A drawing that there is not; says why."""


@dataclass(frozen=True)
class EaselLimits:
    """What one process may take: seconds a drawing and to start, drawings until a fresh one follows, memory beyond what it starts with."""

    drawing_s: float = 5.0
    start_s: float = 30.0
    drawings: int = 1000
    memory_bytes: int = 256 << 20


class Easel:
    """One child process that draws, started when it is first needed. For one caller at a time."""

    def __init__(self, limits: EaselLimits) -> None:
        self._limits = limits
        self._child: subprocess.Popen[bytes] | None = None
        self._drawn = 0
        self._is_stopped = False
        self.failures: Counter[str] = Counter()  # of drawings: time_limit, crashed, not_started or not_drawn

    @property
    def pid(self) -> int | None:
        """The process's id; None where none runs."""
        return self._child.pid if self._child else None

    def svg(self, specification: str, limit_s: float | None = None) -> str:
        """The drawing of a Vega-Lite specification with its rows. Raises DrawingError."""
        return self._drawing(b"s", specification, limit_s).decode()

    def png(self, svg: str) -> bytes:
        """The picture of a drawing. Raises DrawingError."""
        return self._drawing(b"p", svg, None)

    def close(self) -> None:
        """Ends the process."""
        child, self._child = self._child, None
        if child is not None:
            with child:  # closes its pipes, waits for its end
                child.kill()

    def stop(self) -> None:
        """Kills the process while somebody may draw with it, who is told, and begins none any more."""
        self._is_stopped = True
        if (child := self._child) is not None:
            child.kill()

    def _drawing(self, kind: bytes, text: str, limit_s: float | None) -> bytes:
        if self._drawn >= self._limits.drawings:
            self.close()
        child = self._child or self._begun()
        self._drawn += 1
        asked, wait_s = text.encode(errors="replace"), min(self._limits.drawing_s, limit_s or self._limits.drawing_s)
        try:
            status, body = self._exchange(child, _HEAD.pack(kind, len(asked)) + asked, wait_s)
        except child_output.TooLateError as error:
            self.failures["time_limit"] += 1
            msg = f"drawing it took longer than {wait_s:.2g} s and was stopped"
            raise DrawingError(msg) from error
        if status != b"d":
            self.failures["not_drawn"] += 1
            msg = f"it cannot be drawn: {body.decode(errors='replace')}"
            raise DrawingError(msg)
        return body

    def _begun(self) -> subprocess.Popen[bytes]:
        if self._is_stopped:
            msg = "the server is closing"
            raise DrawingError(msg)
        try:
            self._child = children.started(PROGRAM, str(self._limits.drawing_s), str(self._limits.memory_bytes))
            self._drawn = 0
            self._exchange(self._child, b"", self._limits.start_s)
        except (child_output.TooLateError, OSError) as error:
            self.failures["not_started"] += 1
            msg = f"the process that draws did not start: {str(error) or f'nothing came of it in {self._limits.start_s:g} s'}"
            raise DrawingError(msg) from error
        return self._child

    def _exchange(self, child: subprocess.Popen[bytes], question: bytes, limit_s: float) -> tuple[bytes, bytes]:
        """The kind and body of the child's next answer; a child that gives none is ended."""
        answer = b""
        try:
            answer = child_output.talk(child, question, time.monotonic() + limit_s, MOST_BYTES, _is_whole).answer
        finally:
            if not _is_whole(answer):
                self.close()
        if not _is_whole(answer):
            if not self._is_stopped:
                self.failures["crashed"] += 1
            msg = f"the process that drew it ended with {children.how_it_ended(child.returncode)}"
            raise DrawingError(msg)
        return answer[:1], answer[_HEAD.size :]


def _is_whole(answer: bytes | bytearray) -> bool:
    return len(answer) >= _HEAD.size and len(answer) >= _HEAD.size + int(_HEAD.unpack_from(answer)[1])
