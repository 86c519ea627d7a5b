"""What prompts hold: a tenant's own beginning, the conversation so far, and what is new, as names of blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from demo.scenarios.layout import Mix

OPEN_CONVERSATIONS = 32
"""Of a tenant; the oldest one ends when another begins."""


class Prompt(NamedTuple):
    """A prompt's text by its blocks. A block that is not full has a name of its own."""

    tenant: str
    session: int
    tokens: int
    blocks: tuple[int, ...]


class Shape(NamedTuple):
    """How prompts are at an hour: the longest, the tokens of a tenant's own beginning, and the share that goes on with a conversation."""

    longest: int
    system_tokens: int
    goes_on: float


class Prompts:
    """The prompts of a mix. Names of blocks are unique to it by `key`, a number of 32 bits."""

    def __init__(self, mix: Mix, block_tokens: int, key: int) -> None:
        self._turn_tokens, self._block_tokens = mix.turn_tokens, block_tokens
        self._name = key << 52
        self._sessions = 0
        self._open: list[list[tuple[int, int]]] = [[] for _ in range(mix.tenants)]

    def drawn(
        self, rng: np.random.Generator, wanted: npt.NDArray[np.int64], tenants: npt.NDArray[np.int64], shape: Shape
    ) -> Iterator[Prompt]:
        """A prompt of each tenant, about as long as wanted where a conversation begins."""
        luck, grown = rng.random((len(wanted), 2)).tolist(), rng.exponential(self._turn_tokens, len(wanted)).tolist()
        for tenant, tokens, (going_on, which), more in zip(tenants.tolist(), wanted.tolist(), luck, grown, strict=True):
            open_ones = self._open[tenant]
            session = 0
            if open_ones and going_on < shape.goes_on:
                session, before = open_ones.pop(int(which * len(open_ones)))
                longer = before + 1 + int(more)
                session, tokens = (session, longer) if longer <= shape.longest else (0, tokens)
            if not session:
                self._sessions = session = self._sessions + 1
            open_ones.append((session, tokens))
            del open_ones[:-OPEN_CONVERSATIONS]
            yield Prompt(f"tenant-{tenant}", session, tokens, self._blocks(tenant, session, tokens, shape.system_tokens))

    def _blocks(self, tenant: int, session: int, tokens: int, system_tokens: int) -> tuple[int, ...]:
        """The tenant's beginning as far as it goes, then the conversation's own."""
        full, rest = divmod(tokens, self._block_tokens)
        shared = min(system_tokens // self._block_tokens, full)
        of_tenant, of_session = self._name + (tenant << 20), self._name + (session + 4096 << 20)
        blocks = (*range(of_tenant, of_tenant + shared), *range(of_session + shared, of_session + full))
        return (*blocks, -(of_session + tokens)) if rest else blocks
