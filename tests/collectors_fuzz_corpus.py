"""The sound bodies that the fuzzer starts from: recorded ones, where they are, and one of our own with something in every field."""

from __future__ import annotations

from pathlib import Path

from collectors_bodies import body, span
from test_collectors_wire import rich

LIMIT_BYTES = 20_000  # of a recorded body: larger ones say nothing new, and slow each round


def corpus(recordings: Path | None) -> list[bytes]:
    """Bodies to break; without recordings those of our own alone."""
    own = [rich(), body(span(1), span(2), service__name="vllm")]
    if recordings is None:
        return own
    found = (path.read_bytes() for path in sorted(recordings.glob("*/traces/*.pb")))
    return own + [one for one in found if 0 < len(one) <= LIMIT_BYTES]
