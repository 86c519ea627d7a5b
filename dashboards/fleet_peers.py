"""A report per replica and by length of prompts in, peers out: replicas of one model, place and role that serve alike traffic."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dashboards import theme
from dashboards.choice import details

POOL = ("model", "hardware", "topology")
ENOUGH = 3  # peers from which on it is told apart who is odd and who is not
UNLIKE = 0.25  # the part of the requests that lies in other buckets from which on it is other traffic, beyond what few requests stray by
DECODES = "answers prompts that others read"
Row = Mapping[str, Any]
Mix = Mapping[str | None, int]


@dataclass(frozen=True)
class Group:
    """Replicas that are held against each other: what they share, their rows of the report, and in `lacks` why nobody is compared."""

    keys: dict[str, str | None]
    role: str
    rows: list[Row] = field(default_factory=list)
    mix: dict[str | None, int] = field(default_factory=dict)
    traffic: str = ""
    lacks: str = ""

    @property
    def peers(self) -> int:
        """How many others each replica has."""
        return 0 if self.lacks else len(self.rows) - 1

    @property
    def is_few(self) -> bool:
        """Whether there are too few to tell who is odd."""
        return self.peers < ENOUGH

    @property
    def title(self) -> str:
        """What they share, in a line."""
        shared = [self.keys.get("model") or "model unknown", *details(self.keys), *(f"{key} unknown" for key in self._unknown)]
        return " · ".join([*shared, *filter(None, (self.role, self.traffic))])

    @property
    def words(self) -> str:
        """How many peers each has, for reading."""
        if not self.peers:
            return self.lacks or "no peer"
        said = f"{self.peers} peer{'' if self.peers == 1 else 's'}"
        return f"{said}: too few to be sure" if self.is_few else said

    @property
    def _unknown(self) -> list[str]:
        return [key for key in POOL[1:] if not self.keys.get(key)]


def groups(report: Sequence[Row], by_prompt: Sequence[Row], now: Sequence[Row]) -> list[Group]:
    """Every named replica of `report` in the group that it is compared in; `by_prompt` has its requests by `input_bucket` too.

    A replica that has no model is nobody's peer: what it serves is not known. Of prefill and decode pools `now` knows which one is in.
    """
    mixes: dict[tuple[Any, ...], dict[str | None, int]] = {}
    for row in by_prompt:
        mixes.setdefault(_place(row), {})[row["input_bucket"]] = row["requests"]
    roles = {row["replica"]: DECODES if 2 * row["pairs"] > row["answered"] else "" for row in now if row["answered"]}
    usual = _usual_roles(report, roles)
    found: dict[tuple[Any, ...], list[Group]] = {}
    for row in sorted((one for one in report if one["replica"] is not None), key=lambda one: (-one["requests"], one["replica"])):
        keys, mix = {key: row[key] for key in POOL}, mixes.get(_place(row), {})
        role = roles.get(row["replica"], usual.get(tuple(keys.values()), ""))
        alike = found.setdefault((*keys.values(), role), [])
        if row["model"] is None:
            alike.append(Group(keys, role, [row], dict(mix), lacks="no peer: its model is unknown"))
            continue
        near = min(alike, key=lambda one: unlike(one.mix, mix), default=None)
        if near is None or unlike(near.mix, mix) > UNLIKE + 1 / math.sqrt(max(row["requests"], 1)):
            near = Group(keys, role)
            alike.append(near)
        near.rows.append(row)
        for bucket, requests in mix.items():
            near.mix[bucket] = near.mix.get(bucket, 0) + requests
    return [_told(one, alike) for alike in found.values() for one in alike]


def unlike(a: Mix, b: Mix) -> float:
    """The share of requests of two mixes that lie in other buckets: 0 is the same, 1 nothing in common; 0 where one is not known."""
    all_a, all_b = sum(a.values()), sum(b.values())
    if not all_a or not all_b:
        return 0.0
    return sum(abs(a.get(bucket, 0) / all_a - b.get(bucket, 0) / all_b) for bucket in {*a, *b}) / 2


def _usual_roles(report: Sequence[Row], roles: Mapping[str, str]) -> dict[tuple[Any, ...], str]:
    """The role of most replicas of a place: of one that is not heard now it is taken to be that."""
    counts: dict[tuple[Any, ...], Counter[str]] = {}
    for row in report:
        if row["replica"] in roles:
            counts.setdefault(tuple(row[key] for key in POOL), Counter())[roles[row["replica"]]] += 1
    return {place: counted.most_common(1)[0][0] for place, counted in counts.items()}


def _told(group: Group, alike: Sequence[Group]) -> Group:
    """With the words for its traffic, where it stands beside another that only traffic tells apart."""
    if len(alike) < 2 or group.lacks or not group.mix:
        return group
    bucket, most = max(group.mix.items(), key=lambda one: (one[1], str(one[0])))
    of = f"prompts of {bucket} tokens" if bucket else "prompts of unknown length"
    share = most / sum(group.mix.values())
    traffic = of if share > 0.995 else f"{theme.percent(share)} {of}"
    return Group(group.keys, group.role, group.rows, group.mix, traffic)


def _place(row: Row) -> tuple[Any, ...]:
    return tuple(row[key] for key in ("replica", *POOL))
