"""Notices for people: a message in, a title, a paragraph or a whole text out, without markup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from alerts import notice_urgency
from alerts.notice_types import OPENING
from alerts.payload import Message

_LIMIT_TITLE = 160
_WHERE = (
    ("page", "the segment's page"),
    ("notice", "this notice: evidence, who was told, how to silence it"),
    ("flip", "this notice as JSON"),
    ("deliveries", "who was told, as JSON"),
)
_ASKED = {
    "restore_precision": "restore the precision of {}",
    "lower_degree": "lower the degree of {}",
    "add_prefill": "add prefill workers, {}",
    "add_decode": "add decode workers, {}",
    "raise_threshold": "raise the threshold of {}",
    "lower_threshold": "lower the threshold of {}",
    "enable": "enable {} again",
    "widen": "give {} more traffic",
}
"""What an action asks for of a lever, where its name alone does not read as words."""


def title(message: Message) -> str:
    """One line: `[critical] disable speculation: model=llama-70b, hardware=H200`, at most 160 characters."""
    data, kind = message.data, message.type
    if kind == "test":
        return "A test from Leverwatch"
    if kind == "evaluator.heartbeat":
        return "Leverwatch is judging"
    what = _asked(message)
    severity = f"[{data['severity']}] " if data.get("severity") and kind != "lever.resolved" else ""
    return cut(f"{severity}{what}: {segment(data)}", _LIMIT_TITLE)


def segment(data: dict[str, Any]) -> str:
    """The keys of the segment: `model=llama-70b, hardware=H200`, or `all traffic`."""
    return ", ".join(f"{key}={value}" for key, value in (data.get("segment") or {}).items()) or "all traffic"


def reason(message: Message) -> str:
    """Why, as judging said it."""
    data = message.data
    if message.type == "evaluator.heartbeat":
        numbers = ((name, data.get(name)) for name in ("judged_at", "watermark", "streams", "open_recommendations"))
        return ", ".join(f"{_words(name)} {value}" for name, value in numbers if value is not None)
    return str(data.get("reason") or data.get("text") or "")


def link(message: Message, name: str) -> str:
    """An address that the notice gives, empty where it has none."""
    return str((message.data.get("links") or {}).get(name) or "")


def whole(message: Message, now: datetime | None = None) -> str:
    """Everything that a person needs at once: what and why, how urgent, how to switch, check and silence, and where to read on."""
    data = message.data
    parts = [title(message), _line(reason(message))]
    if message.type in OPENING:
        parts += [
            notice_urgency.told(data, now),
            _listed("What to do", steps(data)),
            _listed(_with_note("Commands", data.get("commands_note")), commands(data)),
            _listed("Replicas", [_replicas(data)] if _replicas(data) else []),
        ]
    parts.append(_listed("How to check", _how_to(data, "verify")))
    if message.type in OPENING:
        parts.append(_listed("How to silence", _how_to(data, "silence")))
    parts.append(_listed("Where", [f"{what}: {address}" for name, what in _WHERE if (address := link(message, name))]))
    return "\n\n".join(part for part in (*parts, _ends(message)) if part)


def brief(message: Message, now: datetime | None, limit: int) -> list[str]:
    """The lines of a short message: why, how urgent, what to do first, how to silence, and the page; each is cut, a command left out."""
    data, address = message.data, link(message, "page")
    lines = [cut(reason(message), limit)]
    if message.type in OPENING:
        first = [f"Do: {' '.join(steps(data))}"] if steps(data) else []
        who = [f"Replicas: {_replicas(data)}"] if _replicas(data) else []
        how = "; ".join(commands(data))
        lines += [cut(line, limit * 2 // 3) for line in (notice_urgency.told(data, now), *first, how, *who)]
        told = (("Silence", "silence"), ("Check", "verify"))
        lines += [f"{head}: {line}" for head, name in told for line in _how_to(data, name) if len(line) <= limit]
    return [line for line in (*lines, address) if line]


def headline(messages: Sequence[Message]) -> str:
    """One line for several: `3 notices: disable speculation (2), resolved disaggregation`; the title where it is one."""
    if len(messages) == 1:
        return title(messages[0])
    counts = Counter(_asked(message) for message in messages)
    said = ", ".join(f"{what} ({number})" if number > 1 else what for what, number in counts.items())
    return cut(f"{len(messages)} notices: {said}", _LIMIT_TITLE)


def cut(text: str, limit: int) -> str:
    """A text on one line, of at most so many characters."""
    line = _line(text)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _asked(message: Message) -> str:
    """What is asked for, of which lever: `disable speculation`, `lower the degree of tensor parallel`."""
    lever, action = _words(message.data.get("lever")), "resolved" if message.type == "lever.resolved" else message.data.get("action")
    said = _ASKED.get(str(action)) or f"{_words(action or message.type)} {{}}"
    return said.format(lever).strip()


def steps(data: dict[str, Any]) -> list[str]:
    """What to do, step by step; of a notice of before there were steps for its action those of the way back, but to switch a lever on."""
    found = data.get("steps")
    if found is None and data.get("action") != "enable":
        found = (data.get("rollback") or {}).get("steps")
    return [str(step) for step in found or ()]


def commands(data: dict[str, Any]) -> list[str]:
    """What each engine takes: `vllm: restart without --speculative-config`."""
    return [f"{row['engine']}: {row['text']}" for row in data.get("commands") or ()]


def how_to(message: Message, name: str) -> str:
    """The command line that silences or verifies a notice; empty where it has none, or is over."""
    return "".join(_how_to(message.data, name)) if message.type in OPENING else ""


def _how_to(data: dict[str, Any], name: str) -> list[str]:
    return [str(line)] if (line := (data.get("how_to") or {}).get(name)) else []


def _replicas(data: dict[str, Any]) -> str:
    named, arm = notice_urgency.replicas(data), (data.get("served_by") or {}).get("arm")
    return f"{named} ({_words(arm)})" if named and arm else named


def _with_note(head: str, note: object) -> str:
    return f"{head} ({note})" if note else head


def _ends(message: Message) -> str:
    data = message.data
    if not data.get("decided_at"):
        return ""
    ends = f"Decided {data['decided_at']}, by policy {data.get('policy')} {data.get('policy_version', '')}"
    is_open = data.get("expires_at") and message.type != "lever.resolved"
    return f"{ends}; to be looked at again by {data['expires_at']}" if is_open else ends


def _listed(head: str, lines: Sequence[str]) -> str:
    """A list under a head, each entry on one line: a name from traffic begins no list of its own."""
    return "\n".join([f"{_line(head)}:", *(f"- {_line(line)}" for line in lines)]) if lines else ""


def _line(text: str) -> str:
    return " ".join(text.split())


def _words(name: object) -> str:
    return str(name or "").replace("_", " ")
