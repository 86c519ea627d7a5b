"""A started child process and a question in, what it wrote out, within a deadline and a number of bytes."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any, cast

_CHUNK_BYTES = 1 << 20
_ERROR_BYTES = 64 << 10


class TooLateError(TimeoutError):
    """The child had not answered at the deadline."""


@dataclass(frozen=True)
class Output:
    """What a child wrote: its answer, cut at the byte limit, and the head of its complaints."""

    answer: bytes
    errors: str


def talk(
    child: subprocess.Popen[bytes], question: bytes, deadline_s: float, most_bytes: int, is_whole: Callable[[bytearray], bool] | None = None
) -> Output:
    """Writes the question, reads until the child closes. `deadline_s` is on `time.monotonic`. Raises TooLateError.

    Where `is_whole` tells of an answer that nothing more follows, it is read until then, and the child can be asked again.
    """
    stdin, stdout, stderr = (cast("IO[bytes]", pipe) for pipe in (child.stdin, child.stdout, child.stderr))
    got = {stdout: bytearray(), stderr: bytearray()}
    most = {stdout: most_bytes, stderr: _ERROR_BYTES}
    left = memoryview(question)
    os.set_blocking(stdin.fileno(), False)
    with selectors.DefaultSelector() as selector:
        if left or is_whole is None:
            selector.register(stdin, selectors.EVENT_WRITE)
        for pipe in got:
            selector.register(pipe, selectors.EVENT_READ)
        while any(pipe in _open_pipes(selector) for pipe in got):
            for key, _ in _ready(selector, deadline_s):
                if key.fileobj is stdin:
                    left = _write(selector, stdin, left, closes=is_whole is None)
                else:
                    _read(selector, cast("IO[bytes]", key.fileobj), got, most)
            if is_whole is not None and is_whole(got[stdout]):
                return Output(bytes(got[stdout]), got[stderr].decode(errors="replace"))
    _wait(child, deadline_s)
    return Output(bytes(got[stdout]), got[stderr].decode(errors="replace"))


def _open_pipes(selector: selectors.BaseSelector) -> list[Any]:
    return [key.fileobj for key in selector.get_map().values()]


def _ready(selector: selectors.BaseSelector, deadline_s: float) -> list[tuple[selectors.SelectorKey, int]]:
    ready = selector.select(max(0.0, deadline_s - time.monotonic()))
    if not ready:
        raise TooLateError
    return ready


def _write(selector: selectors.BaseSelector, stdin: IO[bytes], left: memoryview, *, closes: bool) -> memoryview:
    try:
        left = left[os.write(stdin.fileno(), left[:_CHUNK_BYTES]) :]
    except BrokenPipeError:
        left = left[:0]  # the child has ended: its status says why
    if not left:
        selector.unregister(stdin)
        if closes:
            stdin.close()
    return left


def _read(selector: selectors.BaseSelector, pipe: IO[bytes], got: dict[IO[bytes], bytearray], most: dict[IO[bytes], int]) -> None:
    chunk = os.read(pipe.fileno(), _CHUNK_BYTES)
    got[pipe] += chunk[: most[pipe] - len(got[pipe])]
    if not chunk:
        selector.unregister(pipe)


def _wait(child: subprocess.Popen[bytes], deadline_s: float) -> None:
    try:
        child.wait(max(0.0, deadline_s - time.monotonic()))
    except subprocess.TimeoutExpired as error:
        raise TooLateError from error
