"""A policy's file in, its causal chain out: each link in the order in which one follows from the other, with thresholds and sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dashboards import theme
from pipeline.metrics import by_name, judged

_LINKS = (
    ("measured_bottleneck", "Measured bottleneck", "what holds the traffic back"),
    ("enabling_condition", "Enabling condition", "what makes the lever possible"),
    ("receiving_budget", "Receiving budget", "what pays for it"),
    ("expected_benefit", "Expected benefit", "what is gained"),
    ("failure_mode", "Failure mode", "how it fails"),
    ("quality_gate", "Quality gate", "what must not get worse"),
)
_NAMED = ("phase", "resource", "budget", "suite")


@dataclass(frozen=True)
class Link:
    """One link of the chain: what it is called, what that means, what the policy says of it, why, and where the number comes from."""

    name: str
    meaning: str
    said: str
    because: str
    source: str


@dataclass(frozen=True)
class Threshold:
    """One condition of a policy: what it is for, what has to be, and where the number comes from."""

    kind: str
    condition: str
    then: str
    source: str


@dataclass(frozen=True)
class Chain:
    """A policy for reading. `margin` (ratio) is the loss from which on harm counts; None where no condition says one."""

    policy: str
    version: str
    owner: str
    is_shadow: bool
    loaded: str
    benefit: str
    links: list[Link]
    thresholds: list[Threshold]
    steps: list[str]
    engines: list[tuple[str, list[str]]]
    margin: float | None


def chain(row: Mapping[str, Any], loaded: str) -> Chain:
    """A row of `policies` for reading; parts that an older version lacks are left out."""
    body: dict[str, Any] = json.loads(row["body"])
    rollback = body.get("rollback") or {}
    engines = [(name, [text] if isinstance(text, str) else list(text)) for name, text in (rollback.get("engine") or {}).items()]
    named = (body.get("expected_benefit") or {}).get("metric", "net_itl_gain")
    links = [_link(name, meaning, body[key]) for key, name, meaning in _LINKS if body.get(key)]
    return Chain(
        row["policy"],
        row["version"],
        row["owner"],
        bool(body.get("shadow")),
        loaded,
        "net_itl_s" if named == "net_itl_gain" else named,
        links,
        _thresholds(body),
        list(rollback.get("steps") or []),
        engines,
        _margin(body),
    )


def _link(name: str, meaning: str, part: Mapping[str, Any]) -> Link:
    named = [str(part[key]).replace("_", " ") for key in _NAMED if part.get(key)]
    said = [*named, *([condition(part)] if part.get("metric") else [])]
    if part.get("repeats"):
        said.append(f"{part['repeats']} repeats of the original, none older than {part.get('max_age_days', 0):g} days")
    return Link(name, meaning, ", ".join(said), part.get("because") or "", part.get("source") or "")


def _thresholds(body: Mapping[str, Any]) -> list[Threshold]:
    found = [_threshold(str(one.get("kind", "")), one, str(one.get("action", "disable"))) for one in body.get("disable_when") or []]
    if body.get("re_enable_when"):
        found.append(_threshold("switch on again", body["re_enable_when"], "enable"))
    return found + [_threshold(f"gate: {one.get('covers', '')}", one, "neither widened nor switched on") for one in body.get("gates") or []]


def _threshold(kind: str, one: Mapping[str, Any], then: str) -> Threshold:
    where = [f"where {condition(other)}" for other in one.get("where") or []]
    source = " ".join(part for part in (one.get("source") or "", one.get("because") or "") if part)
    return Threshold(kind.replace("_", " "), ", ".join([condition(one), *where]), then.replace("_", " "), source)


def condition(part: Mapping[str, Any]) -> str:
    """`TPOT below 64 requests for 3 blocks`."""
    metric = judged().get(part["metric"]) or by_name().get(part["metric"])
    words = [metric.title if metric else str(part["metric"])]
    if part.get("is"):
        words += [part["is"], _limit(part), f"for {part.get('for_blocks', 1)} blocks"]
    elif part.get("minimum_gain") is not None:
        words.append(f"above {theme.percent(part['minimum_gain'])}")
    return " ".join(words)


def _limit(part: Mapping[str, Any]) -> str:
    if part.get("relative_to_control") is not None:
        return f"{part['relative_to_control']:g} times control"
    return theme.shown(part.get("threshold") or 0.0, part.get("unit") or "")


def _margin(body: Mapping[str, Any]) -> float | None:
    told = [one["threshold"] for one in body.get("disable_when") or [] if one.get("kind") == "harm" and one.get("threshold") is not None]
    return -max(told) if told else None
