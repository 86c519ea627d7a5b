"""A notice and a store to ask in, the flip that the store has of it and what the notice says otherwise out, field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from alerts.notice_types import type_of
from alerts.shown import shown
from leverwatch.checked_notice import Notice
from leverwatch.connection import Connection
from queries.sandbox import SqlError

MOST_TOLD, MOST_SHOWN = 12, 80  # differences, and characters of a value
LEAST_LEFT = 60  # characters that a text has which was cut
_CUT = "ends of texts"  # what a body says that it left out where names from traffic were too long
_ASK = "select * from flips where flip_id = $flip_id"


def stored(notice: Notice, connection: Connection) -> dict[str, Any] | None:
    """The flip of a notice as `GET /api/flips` shows it; None where this store has none of its id."""
    if not notice.flip_id:
        return None
    try:
        rows = connection.sql(_ASK, {"flip_id": notice.flip_id}).to_dicts()
    except SqlError:
        return None
    return shown(rows[0]) if rows else None


def otherwise(notice: Notice, flip: Mapping[str, Any]) -> list[str]:
    """What a notice says otherwise than the flip that is stored of it, a sentence a field; its first ones where they are many."""
    told = list(_apart("", notice.raw, _as_wrapped(notice.raw, flip)))
    more = [f"and {len(told) - MOST_TOLD} fields more"] if len(told) > MOST_TOLD else []
    return told[:MOST_TOLD] + more


def _as_wrapped(raw: Mapping[str, Any], flip: Mapping[str, Any]) -> Mapping[str, Any]:
    """The stored flip in the form that the notice came in: a webhook's body, a flip of the API, or the decision alone."""
    if "data" in raw:
        return {"type": type_of(flip["state_after"], flip["action"]), "timestamp": flip["decided_at"], "data": flip["notice"]}
    found: Mapping[str, Any] = flip if "notice" in raw else flip["notice"]
    return found


def _apart(key: str, said: Any, is_so: Any) -> Iterator[str]:
    if isinstance(said, Mapping) and isinstance(is_so, Mapping):
        left_out = said.get("left_out") or ()
        skipped = {name for name in left_out if said.get(name) is None} | ({"left_out"} if left_out else set())
        for name in sorted({*said, *is_so} - skipped):
            inner = f"{key}.{name}" if key and key != "data" else name
            if _CUT in left_out and name == "segment" and _keys(said.get(name)) != _keys(is_so.get(name)):
                yield from _apart(inner, said.get(name), is_so.get(name))  # words of a segment are cut, never its keys
            elif _CUT in left_out and name in ("segment", "links", "reason", "how_to", "served_by"):
                yield from _cut(inner, said.get(name), is_so.get(name))
            elif name not in is_so:
                yield f"{inner} is {_short(said[name])} in the notice, and the flip stored here has no such field"
            elif name not in said:
                yield f"{inner} is {_short(is_so[name])} in the flip stored here, and the notice has no such field"
            else:
                yield from _apart(inner, said[name], is_so[name])
    elif isinstance(said, list) and isinstance(is_so, list) and len(said) == len(is_so):
        for number, (one, other) in enumerate(zip(said, is_so, strict=True)):
            yield from _apart(f"{key}[{number}]", one, other)
    elif said != is_so or isinstance(said, bool) != isinstance(is_so, bool):
        yield f"{key} is {_short(said)} in the notice and {_short(is_so)} in the flip stored here"


def _cut(key: str, said: Any, is_so: Any) -> Iterator[str]:
    """The same of what may have been cut: a text by its beginning, a table by the keys that are left."""
    if isinstance(said, Mapping) and isinstance(is_so, Mapping):
        for name, text in said.items():
            yield from _cut(f"{key}.{name}", text, is_so.get(name))
    elif isinstance(said, list) and isinstance(is_so, list) and len(said) == len(is_so):
        for number, (one, other) in enumerate(zip(said, is_so, strict=True)):
            yield from _cut(f"{key}[{number}]", one, other)
    elif (
        isinstance(said, str) and len(said) >= LEAST_LEFT and said.endswith("…") and isinstance(is_so, str) and is_so.startswith(said[:-1])
    ):
        return
    else:
        yield from _apart(key, said, is_so)


def _keys(table: Any) -> set[str] | None:
    return set(table) if isinstance(table, Mapping) else None


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
