"""What is being done in, a span of it out where somebody asked for spans; here nobody did, and nothing is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

Kind = Literal["internal", "server", "client"]
Value = str | int | float | bool
NOTHING: Mapping[str, Value] = {}


class Mark:
    """What may be said of a span that is open. This one is of none."""

    def say(self, **facts: Value) -> None:
        """States attributes of ours: `done=3` is `leverwatch.done`."""

    def state(self, facts: Mapping[str, Value]) -> None:
        """States attributes under names of the semantic conventions."""

    def rename(self, name: str) -> None:
        """Gives it another name."""

    def fail(self, error_type: str) -> None:
        """Says that it failed, and with what class of error; never the error's words, which may quote what nobody may see."""

    def pass_over(self) -> None:
        """Nothing was done that is worth telling: the span is not sent."""


class Tracing:
    """Tells nobody. `leverwatch.observe.otlp` has the one that does."""

    is_on = False
    failed_sendings: Mapping[str, int] = {}

    @contextmanager
    def span(self, name: str, kind: Kind = "internal", facts: Mapping[str, Value] = NOTHING) -> Iterator[Mark]:  # noqa: ARG002
        """A span for as long as the block runs."""
        yield _NONE

    def told(self, name: str, elapsed_s: float, kind: Kind, facts: Mapping[str, Value], error_type: str = "") -> None:
        """A span of what has just ended."""

    def wants_export(self) -> bool:
        """Whether the export that has just been received is one of those that get a span."""
        return False

    def ids(self) -> tuple[str, str] | None:
        """The ids of trace and span that are open here, in hex; None where none is."""
        return None

    def close(self) -> None:
        """Sends what waits, for a moment at most."""


_NONE = Mark()
OFF = Tracing()
