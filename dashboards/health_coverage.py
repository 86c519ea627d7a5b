"""A diagnosis in, what is known of the requests of each dialect out: which share has a column or metric, and what brings the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NO_ENGINE = "no engine named"
Finding = Mapping[str, Any]


@dataclass(frozen=True)
class Gap:
    """Columns (or a core metric) that some or all requests lack for the same reason: the share that has them (0..1), and what brings it."""

    names: tuple[str, ...]
    state: str
    coverage: float
    why: str

    @property
    def css(self) -> str:
        """How bad it is; what cannot be had by nature is quiet."""
        return {"missing": "bad", "partial": "warn", "computed": "good", "complete": "good"}.get(self.state, "quiet")

    @property
    def words(self) -> str:
        """Its state for reading."""
        return self.state.replace("_", " ")


@dataclass(frozen=True)
class Dialect:
    """One dialect: its replicas and requests, its core metrics, the columns that are not complete, and the names of those that are."""

    name: str
    replicas: int
    requests: int
    core: list[Gap]
    gaps: list[Gap]
    complete: list[str]


def dialects(told: Finding) -> list[Dialect]:
    """The dialects that requests stand on, those of most requests first."""
    serving: dict[str, list[Finding]] = {}
    for replica in told["replicas"]:
        if replica["stands"] == "requests":
            serving.setdefault(replica["dialect"] or NO_ENGINE, []).append(replica)
    found = [_dialect(name, replicas) for name, replicas in serving.items()]
    return sorted(found, key=lambda one: (-one.requests, one.name))


def _dialect(name: str, replicas: Sequence[Finding]) -> Dialect:
    columns = _merged(replicas, "columns", "column", "complete")
    core = sorted(_merged(replicas, "core", "metric", "computed"), key=lambda one: one.state != "missing")
    gaps = _by_reason(one for one in columns if one.state != "complete")
    requests = sum(one["requests"] for one in replicas)
    return Dialect(name, len(replicas), requests, core, gaps, [one.names[0] for one in columns if one.state == "complete"])


def _merged(replicas: Sequence[Finding], what: str, name: str, whole: str) -> list[Gap]:
    """One a name over all replicas, weighted by their requests."""
    total = sum(one["requests"] for one in replicas)
    found = []
    for place, first in enumerate(replicas[0][what]):
        each = [one[what][place] for one in replicas]
        states = {one["state"] for one in each}
        state = next((told for told in ("missing", "partial") if states == {told}), "")
        state = state or (states.pop() if len(states) == 1 else "partial" if what == "columns" else _of_several(states))
        share = sum(one["coverage"] * replica["requests"] for one, replica in zip(each, replicas, strict=True)) / max(total, 1)
        whys = dict.fromkeys(one["why"] for one in each if one["why"] and one["state"] != whole)
        found.append(Gap((first[name],), state, share, "; ".join(whys)))
    return found


def _of_several(states: set[str]) -> str:
    """A core metric that replicas differ in: what is worst is said."""
    return "missing" if "missing" in states else "computed"


def _by_reason(gaps: Iterable[Gap]) -> list[Gap]:
    """Columns that lack alike stand together, those that nobody has first."""
    alike: dict[tuple[str, float, str], list[str]] = {}
    for gap in gaps:
        alike.setdefault((gap.state, gap.coverage, gap.why), []).extend(gap.names)
    found = [Gap(tuple(names), state, coverage, why) for (state, coverage, why), names in alike.items()]
    return sorted(found, key=lambda one: (one.state != "missing", one.coverage))
