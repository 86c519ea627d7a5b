"""A flip's notice in, why it was decided and what to do about it out, in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from dashboards.figure import Sql

# The causal chain in the order in which it is told. Older notices may lack a part.
_PARTS = {
    "measured_bottleneck": "Bottleneck",
    "enabling_condition": "Enabled by",
    "receiving_budget": "Paid from",
    "expected_benefit": "Expected benefit",
    "failure_mode": "Failure mode",
    "disable_when": "Turn off when",
    "re_enable_when": "Turn on again when",
    "quality_gate": "Quality gate",
}
_NAMED = ("phase", "resource", "budget", "kind", "suite")


@dataclass(frozen=True)
class Steps:
    """The causal chain, the steps and engine commands back (none where nothing is to be turned off), and the numbers' query."""

    chain: list[tuple[str, str]]
    rollback: list[str]
    commands: list[tuple[str, str]]
    sql: str
    params: str
    link: str
    question: Sql


def steps(flip_id: str, notice: Mapping[str, Any], state_after: str) -> Steps:
    """What a notice says, for reading."""
    is_off = state_after == "off_recommended"
    query = notice.get("query") or {}
    chain = notice.get("causal_chain") or {}
    rollback = (notice.get("rollback") or {}).get("steps") or []
    return Steps(
        [(words, part) for name, words in _PARTS.items() for part in _parts(chain.get(name))],
        list(rollback) if is_off else [],
        [(command["engine"], command["text"]) for command in notice.get("commands") or []] if is_off else [],
        query.get("sql", ""),
        json.dumps(query.get("params", {}), indent=2, ensure_ascii=False),
        f"api/flips?{urlencode({'flip_id': flip_id})}",
        Sql(query.get("sql", ""), query.get("params", {})),
    )


def _parts(part: Any) -> list[str]:
    listed = part if isinstance(part, list) else [part] if part else []
    return [_words(one) for one in listed]


def _words(part: Mapping[str, Any]) -> str:
    """`batch_at_admission below 64 requests for 3 blocks: because`."""
    named = [str(part[name]).replace("_", " ") for name in _NAMED if part.get(name)]
    said = ", ".join([*named, *_condition(part)])
    return ": ".join(text for text in (said, part.get("because") or part.get("source") or "") if text)


def _condition(part: Mapping[str, Any]) -> list[str]:
    if not part.get("metric"):
        return []
    words = [part["metric"]]
    if part.get("is"):
        words += [part["is"], _limit(part), f"for {part.get('for_blocks', 1)} blocks"]
    elif part.get("minimum_gain") is not None:
        words.append(f"above {part['minimum_gain']:g}")
    return [" ".join(words)]


def _limit(part: Mapping[str, Any]) -> str:
    if part.get("relative_to_control") is not None:
        return f"{part['relative_to_control']:g} times control"
    unit = part.get("unit") or ""
    return f"{part.get('threshold') or 0:g} {'' if unit == 'ratio' else unit}".strip()
