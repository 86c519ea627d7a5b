"""What receivers hand bodies to: whatever keeps a body durably, and says when it does."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol


class SinkFullError(RuntimeError):
    """More is waiting to be stored than may wait; the sender is to come again later. `reason`: backlog, disk or stopping."""

    def __init__(self, message: str, reason: str = "backlog") -> None:
        super().__init__(message)
        self.reason = reason


class Sink(Protocol):
    """A spool or a lake. `append` is safe from any thread."""

    def append(self, signal: str, sender: str, received_unix_nano: int, body: bytes, counts: bytes = b"") -> Future[None]:
        """Takes one body, with what was counted of it where that is known; the future is done once it is durable.

        It fails with what keeps it from being durable, which is to be told to the sender as one to be tried again, or with an
        UnsoundBodyError.

        Raises:
            SinkFullError: too much waits already.
        """
        ...
