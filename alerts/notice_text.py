"""Notices for people: a message in, a title, a paragraph or a whole text out, without markup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from alerts.payload import Message

_LIMIT_TITLE = 160


def title(message: Message) -> str:
    """One line: `[critical] disable speculation: model=llama-70b, hardware=H200`, at most 160 characters."""
    data, kind = message.data, message.type
    if kind == "test":
        return "A test from Leverwatch"
    if kind == "evaluator.heartbeat":
        return "Leverwatch is judging"
    what = f"{_action(message)} {_words(data.get('lever'))}".strip()
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


def whole(message: Message) -> str:
    """Everything that a person needs at once: reason, evidence, how to switch, until when it holds, and where to read on."""
    data = message.data
    parts = [title(message), reason(message)]
    if message.type != "lever.resolved":
        parts += [
            _listed("How to", _steps(data)),
            _listed("Commands", [f"{row['engine']}: {row['text']}" for row in _rows(data, "commands")]),
        ]
    parts.append(_listed("Where", [address for name in ("page", "flip", "deliveries") if (address := link(message, name))]))
    ends = (
        f"Decided {data['decided_at']}, by policy {data.get('policy')} {data.get('policy_version', '')}" if data.get("decided_at") else ""
    )
    if ends and data.get("expires_at") and message.type != "lever.resolved":
        ends += f"; to be looked at again by {data['expires_at']}"
    return "\n\n".join(part for part in (*parts, ends) if part)


def headline(messages: Sequence[Message]) -> str:
    """One line for several: `3 notices: disable speculation (2), resolved disaggregation`; the title where it is one."""
    if len(messages) == 1:
        return title(messages[0])
    counts = Counter(f"{_action(message)} {_words(message.data.get('lever'))}".strip() for message in messages)
    said = ", ".join(f"{what} ({number})" if number > 1 else what for what, number in counts.items())
    return cut(f"{len(messages)} notices: {said}", _LIMIT_TITLE)


def cut(text: str, limit: int) -> str:
    """A text on one line, of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _action(message: Message) -> str:
    return {"lever.resolved": "resolved"}.get(message.type) or _words(message.data.get("action")) or _words(message.type)


def _steps(data: dict[str, Any]) -> list[str]:
    return [str(step) for step in (data.get("rollback") or {}).get("steps", ())]


def _rows(data: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return list(data.get(name) or ())


def _listed(head: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{head}:", *(f"- {line}" for line in lines)]) if lines else ""


def _words(name: object) -> str:
    return str(name or "").replace("_", " ")
