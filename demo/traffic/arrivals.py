"""An arrival: what a request asks for before anybody serves it."""

from __future__ import annotations

from typing import NamedTuple


class Arrival(NamedTuple):
    """One request at the door of a pool. `at_s` counts from the scenario's start. `blocks` name what its prompt holds, block by block:
    equal names are equal text after equal text. `session` is the conversation it belongs to."""

    at_s: float
    pool: str
    tenant: str
    session: int
    prompt_tokens: int
    output_tokens: int
    max_tokens: int
    temperature: float
    top_p: float
    blocks: tuple[int, ...]
