"""A replica's KV cache: blocks of prompts in, which of them are there already, and what has to go for them, out.

Blocks that no running request holds stay until room is needed; the one that was used longest ago goes first, of one prompt the last.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence


class KvCache:
    """Room for `capacity` blocks; without `reuse` a block goes when its request does. Tokens of answers take room and are not shared."""

    def __init__(self, capacity: float, *, reuse: bool = True) -> None:
        self.capacity, self.reuse = capacity, reuse
        self._held: dict[int, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()
        self.answers = 0.0
        """Blocks of answers."""
        self.unshared = 0
        """Blocks of prompts that were taken without reuse."""
        self.evicted = 0

    @property
    def used(self) -> float:
        """Blocks that running requests hold."""
        return len(self._held) + self.unshared + self.answers

    @property
    def idle(self) -> int:
        """Blocks that are cached and that nobody holds."""
        return len(self._idle)

    @property
    def room(self) -> float:
        """Blocks that can be had, those that would have to go for them included."""
        return self.capacity - len(self._held) - self.unshared - self.answers

    def leading(self, blocks: Sequence[int]) -> int:
        """How many of a prompt's first blocks are there."""
        held, idle = self._held, self._idle
        for place, block in enumerate(blocks):
            if block not in held and block not in idle:
                return place
        return len(blocks)

    def take(self, blocks: Sequence[int], *, answers: float = 0.0, spare: float = 0.0, anyway: bool = False) -> bool:
        """Holds a prompt's blocks, and those of an answer so far; False, and nothing is held, where less than `spare` would be left and
        they are not to be held `anyway`."""
        held, room = self._held, self.room - answers - spare
        if not anyway and len(blocks) > room and not (self.reuse and sum(block not in held for block in blocks) <= room):
            return False
        self.answers += answers
        if self.reuse:
            idle = self._idle
            for block in blocks:
                if block in held:
                    held[block] += 1
                else:
                    held[block] = 1
                    if block in idle:
                        del idle[block]
        else:
            self.unshared += len(blocks)
        self._make_room()
        return True

    def give_back(self, blocks: Sequence[int], *, shared: bool | None = None) -> None:
        """Lets a prompt's blocks go; those that nobody else holds stay idle. `shared`: whether they were taken with reuse, as now."""
        if not (self.reuse if shared is None else shared):
            self.unshared -= len(blocks)
            return
        held, idle = self._held, self._idle
        for block in reversed(blocks):
            holders = held[block] - 1
            if holders:
                held[block] = holders
            else:
                del held[block]
                idle[block] = None
        self._make_room()

    def grow(self, blocks: float) -> None:
        """Takes room for answers, or gives it back where negative."""
        grown = self.answers + blocks
        self.answers = grown if grown > 0.0 else 0.0
        self._make_room()

    def resize(self, capacity: float, *, reuse: bool) -> None:
        """Has this room and use from now on; what is held stays, whatever room it takes."""
        self.capacity, self.reuse = capacity, reuse
        self._make_room()

    def forget(self) -> None:
        """Drops what nobody holds, as a restart does."""
        self._idle.clear()

    def _make_room(self) -> None:
        idle = self._idle
        if not idle:
            return
        over = len(idle) + len(self._held) + self.unshared + self.answers - self.capacity
        while over > 0 and idle:
            idle.popitem(last=False)
            self.evicted += 1
            over -= 1
