"""A flip's notice in, why it was decided and what to do about it out, in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from dashboards import lever_chain
from dashboards.figure import Sql

# The causal chain in the order in which it is told. Older notices may lack a part.
_PARTS = {
    "measured_bottleneck": "Bottleneck",
    "enabling_condition": "Enabled by",
    "receiving_budget": "Paid from",
    "expected_benefit": "Expected benefit",
    "failure_mode": "Failure mode",
    "disable_when": "Switch off when",
    "re_enable_when": "Switch on again when",
    "quality_gate": "Quality gate",
}
ALSO = "or"
_NAMED = ("phase", "resource", "budget", "kind", "suite")


@dataclass(frozen=True)
class Steps:
    """The causal chain, the steps and engine commands back (none where nothing is to be switched off), and the numbers' query."""

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
        [said for name, words in _PARTS.items() for said in _parts(words, chain.get(name))],
        list(rollback) if is_off else [],
        [(command["engine"], command["text"]) for command in notice.get("commands") or []] if is_off else [],
        query.get("sql", ""),
        json.dumps(query.get("params", {}), indent=2, ensure_ascii=False),
        f"api/flips?{urlencode({'flip_id': flip_id})}",
        Sql(query.get("sql", ""), query.get("params", {})),
    )


def _parts(words: str, part: Any) -> list[tuple[str, str]]:
    """A part of the chain, or each of several: what it is stands before the first alone."""
    listed = part if isinstance(part, list) else [part] if part else []
    return [(words if not place else ALSO, _words(one)) for place, one in enumerate(listed)]


def _words(part: Mapping[str, Any]) -> str:
    """`Batch at admission below 64 requests for 3 blocks: because`."""
    named = [str(part[name]).replace("_", " ") for name in _NAMED if part.get(name)]
    said = ", ".join([*named, *([lever_chain.condition(part)] if part.get("metric") else [])])
    return ": ".join(text for text in (said, part.get("because") or part.get("source") or "") if text)
