"""Groups of replicas that are alike in, how evenly each is used out: its most loaded replica over the mean, the least even group first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dashboards.fleet_peers import Group

NEEDS = "prompt_tokens_per_s"  # of each row, beside what the table of replicas shows
Row = Mapping[str, Any]


def _computed(row: Row) -> float | None:
    """The prompt tokens a second that were computed, where it is known which were cached."""
    tokens, skipped = row["prompt_tokens_per_s"], row["skipped_token_ratio"]
    return None if tokens is None or skipped is None else float(tokens * (1 - skipped))


# Each metric of spread with what it is the spread of, from a row of a replica.
SPREADS: dict[str, Callable[[Row], float | None]] = {
    "request_load_spread": lambda row: row["requests"],
    "output_load_spread": lambda row: row["output_tokens_per_s"],
    "affinity_load_spread": _computed,
}


@dataclass(frozen=True)
class Pool:
    """A group for reading: what its replicas share, how many they are, their requests, and the spread of each of SPREADS; None: unknown."""

    name: str
    replicas: int
    requests: int
    spreads: list[float | None]


def pools(groups: Iterable[Group]) -> list[Pool]:
    """The groups that have more than one replica."""
    found = [
        Pool(one.title, len(one.rows), sum(row["requests"] for row in one.rows), [_spread(one, of) for of in SPREADS.values()])
        for one in groups
        if one.peers
    ]
    return sorted(found, key=lambda pool: (-(pool.spreads[0] or 0.0), pool.name))


def _spread(group: Group, of: Callable[[Row], float | None]) -> float | None:
    known = [value for row in group.rows if (value := of(row)) is not None]
    mean = sum(known) / max(len(known), 1)
    return max(known) / mean if mean else None
