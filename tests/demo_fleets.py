"""Small fleets for tests: a pool's serving and its arrivals in, a scenario and what happened in it out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from demo.fleet import Fleet
from demo.records import Reading, Request
from demo.replicas.serving import Serving
from demo.scenarios.layout import Day, Disorder, Mix, Noise, Pool, Scenario
from demo.traffic.arrivals import Arrival
from demo.traffic.mixes import BLOCK_S

NS = 1_000_000_000
QUIET = Noise(pool_sd=0, replica_sd=0)
FOREVER_S = 30_000.0


def pool(serving: Serving | None = None, **changed: Any) -> Pool:
    """One vLLM of an 8b model on an H100, unless told otherwise."""
    said = {"name": "p", "model": "m", "engine": "vllm", "network": "dense-8b", "hardware": "h100", "groups": 1, "kv_block_tokens": 16}
    return Pool(**(said | {"serving": serving or Serving()} | changed))


def scenario(*pools: Pool, traffic: Sequence[Mix] = (), **changed: Any) -> Scenario:
    """A scenario without noise."""
    said = {"name": "s", "what": "s", "hours": 1, "noise": QUIET, "day": Day(), "disorder": Disorder(), "scrape_s": 10}
    return Scenario(**(said | {"pools": pools, "traffic": traffic} | changed))


def arrival(
    at_s: float, blocks: Iterable[int] = (), prompt: int | None = None, output: int = 10, of: str = "p", tenant: str = "t", session: int = 0
) -> Arrival:
    """A request; its blocks hold 16 tokens each."""
    blocks = tuple(blocks)
    tokens = prompt if prompt is not None else 16 * len(blocks)
    return Arrival(at_s, of, tenant, session, tokens, output, 4096, 0.0, 1.0, blocks)


def unlike(at_s: float, number: int, prompt: int, output: int) -> Arrival:
    """A request whose prompt nobody else has."""
    return arrival(at_s, range(number << 20, (number << 20) + -(-prompt // 16)), prompt, output)


def fleet(played: Scenario, arrivals: Sequence[Arrival], seed: int = 1) -> Fleet:
    """The fleet that is asked these, in order of time."""
    blocks: dict[int, list[Arrival]] = {}
    for one in arrivals:
        blocks.setdefault(int(one.at_s // BLOCK_S), []).append(one)
    return Fleet(played, 0, seed, arrivals=lambda number: blocks.get(number, []))


def requests(fleet: Fleet, until_s: float = FOREVER_S) -> list[Request]:
    """The requests that ended until then."""
    return [event for event in fleet.until(round(until_s * NS)) if isinstance(event, Request)]


def looked_at(fleet: Fleet, until_s: float) -> tuple[list[Request], list[Reading]]:
    """The requests that ended until then, and the readings."""
    events = fleet.until(round(until_s * NS))
    return [event for event in events if isinstance(event, Request)], [event for event in events if isinstance(event, Reading)]
