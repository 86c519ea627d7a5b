"""Two policies in, what changed from one to the other out: key by key, each with what it does to how closely the lever is watched.

`tightens`: it fires sooner or on more, or turns more traffic on later. `loosens`: the other way. `changes`: neither can be said of it.
`words`: nothing is judged otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from alerts import wording
from alerts.chain import Advice, Condition, Policy, PremiseLost, SingleArm, Trigger, kind_of

Sense = Literal["tightens", "loosens", "changes", "words"]
_WORDS = ("because", "source", "owner", "version", "name")
_SEVERITIES = ("info", "warning", "critical")
# What more of a number does.
_MORE: Mapping[str, Sense] = {
    "minimum_blocks": "loosens",
    "minimum_requests": "loosens",
    "minimum_coverage": "loosens",
    "stale_after_s": "loosens",
    "dwell_s": "tightens",
    "expected_benefit.minimum_gain": "tightens",
    "quality_gate.max_age_days": "loosens",
    "quality_gate.repeats": "tightens",
}
_UNITS = {"_s": "s", "_days": "days", "_blocks": "blocks", "_requests": "requests", "_coverage": "ratio", "_gain": "ratio"}
_OPPOSITE: Mapping[Sense, Sense] = {"tightens": "loosens", "loosens": "tightens", "changes": "changes", "words": "words"}


class Difference(NamedTuple):
    """One key that differs: both values in words with their units, empty where there is none."""

    key: str
    old: str
    new: str
    sense: Sense

    def text(self) -> str:
        """`dwell_s: 3600 s -> 7200 s (tightens)`."""
        return f"{self.key}: {self.old or 'none'} -> {self.new or 'none'} ({self.sense})"


def differences(old: Policy, new: Policy) -> list[Difference]:
    """Every key that differs, conditions first."""
    return [
        *_listed("disable_when", _triggers(old), _triggers(new), is_good=False),
        *_listed("gates", _gates(old), _gates(new), is_good=False),
        *_condition("re_enable_when", old.re_enable_when, new.re_enable_when, is_good=True),
        *_condition("enabling_condition", old.enabling_condition, new.enabling_condition, is_good=True),
        *_listed("advise_when", {one.metric: one for one in old.advise_when}, {one.metric: one for one in new.advise_when}, is_good=None),
        *_rest(old, new),
    ]


def _triggers(policy: Policy) -> dict[str, Condition]:
    return {f"{kind_of(one)} on {one.metric}{f' ({one.action})' if one.where else ''}": one for one in policy.disable_when}


def _where(condition: Condition | None) -> dict[str, Condition]:
    """What narrows a trigger or an advice: whether less of it loosens depends on what else the policy has."""
    return {one.metric: one for one in condition.where} if isinstance(condition, Trigger | Advice) else {}


def _gates(policy: Policy) -> dict[str, Condition]:
    return {f"{gate.covers} on {gate.metric}": gate for gate in policy.gates}


def _listed(key: str, old: Mapping[str, Condition], new: Mapping[str, Condition], *, is_good: bool | None) -> Iterator[Difference]:
    """Conditions of a list, by what they are of: those that went, came, or changed, and their order where it counts.

    One that is narrowed by others stands in the place of another trigger: neither more nor less of it can be said to be closer.
    """
    for name in dict.fromkeys((*old, *new)):
        where = f"{key} {name}"
        gone: Sense = "changes" if is_good is None or _where(old.get(name, new.get(name))) else "loosens"
        if name not in new:
            yield Difference(where, told(old[name]), "", gone)
        elif name not in old:
            yield Difference(where, "", told(new[name]), _OPPOSITE[gone])
        else:
            yield from _condition(where, old[name], new[name], is_good=is_good)
    order = [[name for name in one if name in other] for one, other in ((old, new), (new, old))]
    if order[0] != order[1] and key == "disable_when":
        yield Difference(f"{key} order", ", ".join(order[0]), ", ".join(order[1]), "changes")


def told(condition: Condition) -> str:
    """A condition in a line: `net_itl_gain below 0 ratio for 3 blocks: disable`."""
    text = f"{condition.metric} {condition.is_} {_limit(condition)} for {wording.blocks(condition.for_blocks)}"
    text += "".join(f", where {one.metric} {one.is_} {_limit(one)}" for one in _where(condition).values())
    return f"{text}: {condition.action}" if isinstance(condition, Trigger) else text


def _condition(key: str, old: Condition, new: Condition, *, is_good: bool | None) -> Iterator[Difference]:
    """The keys of one condition. One that is good news, held more easily, loosens; one that is bad news tightens."""
    easier: Sense = "changes" if is_good is None else "loosens" if is_good else "tightens"
    if (old.metric, old.is_, _is_relative(old)) != (new.metric, new.is_, _is_relative(new)):
        yield Difference(key, told(old), told(new), "changes")
        return
    ends = _number(old), _number(new)
    if ends[0] != ends[1]:
        is_easier = (ends[1] > ends[0]) == (new.is_ == "below")
        yield Difference(f"{key} threshold", _limit(old), _limit(new), easier if is_easier else _OPPOSITE[easier])
    if old.for_blocks != new.for_blocks:
        is_easier = new.for_blocks < old.for_blocks
        yield _plain(key, "for_blocks", old.for_blocks, new.for_blocks, easier if is_easier else _OPPOSITE[easier], "blocks")
    yield from _trigger_keys(key, old, new)
    yield from _listed(f"{key} where", _where(old), _where(new), is_good=None)
    seen = ("where", "metric", "is", "threshold", "relative_to_control", "for_blocks", "re_enable_at", "severity", "kind", "covers")
    yield from _table(key, _without(old, seen), _without(new, seen))


def _trigger_keys(key: str, old: Condition, new: Condition) -> Iterator[Difference]:
    if isinstance(old, PremiseLost) and isinstance(new, PremiseLost) and old.re_enable_at != new.re_enable_at:
        sense: Sense = "changes"
        if old.re_enable_at is not None and new.re_enable_at is not None:
            sense = "tightens" if (new.re_enable_at > old.re_enable_at) == (new.is_ == "below") else "loosens"
        yield _plain(key, "re_enable_at", old.re_enable_at, new.re_enable_at, sense, new.unit)
    if isinstance(old, Trigger) and isinstance(new, Trigger) and old.severity != new.severity:
        yield _plain(key, "severity", old.severity, new.severity, _severity(old.severity, new.severity))


def _rest(old: Policy, new: Policy) -> Iterator[Difference]:
    """What is no condition: the chain's words, the bounds, and how people are told."""
    before, after = _flat(msgspec.to_builtins(old)), _flat(msgspec.to_builtins(new))
    for key in dict.fromkeys((*before, *after)):
        yield from _table("", {key: before.get(key)}, {key: after.get(key)})


def _table(key: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            unit = next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")
            yield _plain(key, name, old.get(name), new.get(name), _sense(name, old.get(name), new.get(name)), unit)


def _sense(name: str, old: Any, new: Any) -> Sense:
    if name.rsplit(".", maxsplit=1)[-1] in _WORDS:
        return "words"
    if name == "severity":
        return _severity(old, new)
    if name == "shadow":
        return "loosens" if new else "tightens"
    more = _MORE.get(name)
    return "changes" if more is None else more if new > old else _OPPOSITE[more]


def _severity(old: str | None, new: str | None) -> Sense:
    if old not in _SEVERITIES or new not in _SEVERITIES:
        return "changes"
    return "tightens" if _SEVERITIES.index(new) > _SEVERITIES.index(old) else "loosens"


def _plain(key: str, name: str, old: Any, new: Any, sense: Sense, unit: str = "") -> Difference:
    return Difference(f"{key} {name}".strip(), _word(old, unit), _word(new, unit), sense)


def _word(value: Any, unit: str) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:g} {unit}".strip()
    return ", ".join(map(str, value)) or "none" if isinstance(value, list | tuple) else str(value)


def _limit(condition: Condition) -> str:
    return f"{_number(condition):g} times control's" if _is_relative(condition) else f"{_number(condition):g} {condition.unit}"


def _number(condition: Condition) -> float:
    """The number that a condition turns at; a compared one has exactly one of two."""
    if condition.threshold is not None:
        return condition.threshold
    return 0.0 if isinstance(condition, SingleArm) or condition.relative_to_control is None else condition.relative_to_control


def _is_relative(condition: Condition) -> bool:
    return condition.threshold is None


def _without(condition: Condition, names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in msgspec.to_builtins(condition).items() if name not in names}


_CONDITIONS = ("disable_when", "gates", "advise_when", "re_enable_when", "enabling_condition")


def _flat(parts: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in parts.items():
        if key not in _CONDITIONS:
            flat |= {f"{key}.{name}": inner for name, inner in _flat(value).items()} if isinstance(value, dict) else {key: value}
    return flat
