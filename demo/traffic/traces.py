"""Public traces as traffic: a file in, told by its content, arrivals of a block of five minutes out, and the fleet that it is played on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from demo import scenarios
from demo.scenarios.layout import Scenario
from demo.traffic import azure, mooncake
from demo.traffic.arrivals import Arrival
from demo.traffic.asked import Asked, TraceError, lines
from demo.traffic.mixes import BLOCK_S

LINES_LOOKED_AT = 5
SLOWEST, FASTEST = 0.001, 10_000.0


class Kind(NamedTuple):
    """A kind of trace; its fleet stands in `demo/traffic/fleets` under its name, and its requests are its tenant's."""

    is_of: Callable[[bytes], bool]
    read: Callable[[Path], Asked]
    tenant: str
    has_own_times: bool


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "mooncake-trace": Kind(mooncake.is_of, mooncake.read, "mooncake", has_own_times=False),
        "azure-trace": Kind(azure.is_of, azure.read, "azure", has_own_times=True),
    }
)


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace as traffic for a fleet. The times of what is `asked` are those of its being played `speed` times as fast as life."""

    kind: str
    fleet: Scenario
    asked: Asked
    speed: float
    sessions: list[int] | None

    @property
    def requests(self) -> int:
        """How many requests it has."""
        return len(self.asked.at_s)

    @property
    def duration_s(self) -> float:
        """Seconds from its first arrival, which is at 0, to its last."""
        return float(self.asked.at_s[-1])

    @property
    def began_ns(self) -> int | None:
        """The moment of its first arrival, in Unix nanoseconds, where the trace says it."""
        return self.asked.first_ns if KINDS[self.kind].has_own_times else None

    @property
    def unread(self) -> tuple[str, ...]:
        """Why lines were left out, one text a line."""
        return self.asked.unread

    def block(self, number: int) -> list[Arrival]:
        """The arrivals of block `number`, which begins at `number` * 300 s, in order of time."""
        edges = np.array([number, number + 1]) * BLOCK_S
        first, end = np.searchsorted(self.asked.at_s, edges).tolist()
        return [self._arrival(place) for place in range(first, end)]

    def again(self, number: int) -> list[Arrival]:
        """The arrivals of block `number`, which may be negative, of the trace played over and over, each time in whole blocks."""
        blocks = int(self.duration_s // BLOCK_S) + 1
        later_s = number // blocks * blocks * BLOCK_S
        return [arrival._replace(at_s=arrival.at_s + later_s) for arrival in self.block(number % blocks)]

    def _arrival(self, place: int) -> Arrival:
        prompt, output = int(self.asked.prompt_tokens[place]), int(self.asked.output_tokens[place])
        return Arrival(
            at_s=float(self.asked.at_s[place]),
            pool=self.fleet.pools[0].name,
            tenant=KINDS[self.kind].tenant,
            session=self.sessions[place] if self.sessions else place,
            prompt_tokens=prompt,
            output_tokens=output,
            max_tokens=output,
            temperature=0.0,
            top_p=1.0,
            blocks=self.asked.blocks[place] if self.asked.blocks else self._own_blocks(place, prompt),
        )

    def _own_blocks(self, place: int, prompt_tokens: int) -> tuple[int, ...]:
        """Names that no other prompt has: a prompt has fewer than 2^24 blocks."""
        first = place << 24
        return tuple(range(first, first - (-prompt_tokens // self.fleet.pools[0].kv_block_tokens)))


def kind_of(path: Path) -> str | None:
    """The kind of a file by its first lines, or None. Raises OSError."""
    try:
        first = [text for _, text in islice(lines(path), LINES_LOOKED_AT)]
    except TraceError:
        return None
    if first and azure.is_of(first[0]):
        return "azure-trace"
    return "mooncake-trace" if any(map(mooncake.is_of, first)) else None


def opened(path: Path, speed: float = 1.0, *, kind: str | None = None, fleet: Scenario | None = None) -> Trace:
    """The trace of a file, told by content unless `kind` says what it is, for the fleet of its kind unless there is another.

    It is played `speed` times as fast as life: its times are divided by it.

    Raises:
        TraceError: the file is no trace, no line of it can be read, its blocks are not the fleet's, or the speed is not taken.
        OSError: the file cannot be read.
    """
    if not SLOWEST <= speed <= FASTEST:
        msg = f"speed {speed:g}: a number from {SLOWEST:g} to {FASTEST:g} is taken"
        raise TraceError(msg)
    found = kind or kind_of(path)
    if found is None or found not in KINDS:
        known = "JSON lines with timestamp, input_length, output_length and hash_ids, or CSV with " + ", ".join(azure.COLUMNS)
        msg = f"{path}: no trace that is known; taken are {known}"
        raise TraceError(msg)
    asked, fleet = KINDS[found].read(path), fleet or fleet_of(found)
    asked = replace(asked, at_s=asked.at_s / speed)
    if asked.block_tokens not in (None, fleet.pools[0].kv_block_tokens):
        msg = f"{fleet.name}: kv_block_tokens = {fleet.pools[0].kv_block_tokens}; the blocks of {path} have {asked.block_tokens} tokens"
        raise TraceError(msg)
    return Trace(found, fleet, asked, speed, mooncake.sessions(list(asked.blocks)) if asked.blocks else None)


def fleet_of(kind: str) -> Scenario:
    """The fleet that traces of a kind are played on: pools without traffic of their own. Raises ScenarioError."""
    where = resources.files("demo.traffic") / "fleets" / f"{kind}.toml"
    return scenarios.parse(where.read_text(encoding="utf-8"), f"demo/traffic/fleets/{kind}.toml")
