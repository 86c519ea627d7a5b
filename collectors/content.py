"""Attribute keys and texts in, which of them hold what people wrote and models answered out: dropped unless asked for."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collectors import dialects
from collectors.dialect_parts import Content, Deployment, Dialect

# Of an error's text only what cannot quote a prompt: the class of the exception, or a status of gRPC.
ERROR_CLASS = (
    r"^(?:(?P<kind>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Timeout|Warning))(?::(?s:.*))?"
    r"|(?P<code>CANCELLED|UNKNOWN|INVALID_ARGUMENT|DEADLINE_EXCEEDED|NOT_FOUND|ALREADY_EXISTS|PERMISSION_DENIED|RESOURCE_EXHAUSTED"
    r"|FAILED_PRECONDITION|ABORTED|OUT_OF_RANGE|UNIMPLEMENTED|INTERNAL|UNAVAILABLE|DATA_LOSS|UNAUTHENTICATED))$"
)
NO_CLASS = r"[^\w.:$<>\[\]`,+/-]"  # what no name of an exception's class holds in any language, so a sentence
WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def is_content(facts: Deployment, known: Iterable[Dialect]) -> Callable[[str], bool]:
    """Whether a key holds prompt or completion text: one that is listed, or one whose last word says so.

    A key from which a dialect reads a signal holds none.
    """
    kept = {source.key for said in (facts.signals, *(one.signals for one in known)) for many in said.values() for source in many}
    kept |= {event.key for one in known for event in one.events} | set(facts.replica.keys) | {facts.dialect}
    listed = dialects.content_pattern(facts.content.keys)

    @functools.lru_cache(maxsize=65_536)  # keys are few, and asked for again and again; a sender that makes them up goes past
    def is_dropped(key: str) -> bool:
        if key in kept or key.startswith(facts.prefixes.own):
            return False
        return listed.match(key) is not None or _says_content(key, facts.content)

    return is_dropped


def without_error_text(spans: pa.Table) -> pa.Table:
    """Rows of `spans` whose status messages keep the class of an error, and nothing of what it says."""
    messages = spans["status_message"]
    if messages.null_count == len(messages):
        return spans
    found = pc.struct_field(pc.extract_regex(messages, ERROR_CLASS), [0]), pc.struct_field(pc.extract_regex(messages, ERROR_CLASS), [1])
    kept = pc.if_else(pc.equal(found[0], ""), found[1], found[0])
    return spans.set_column(spans.schema.get_field_index("status_message"), "status_message", kept)


def without_texts(spans: pa.Table, content: Content) -> pa.Table:
    """Rows of `spans` without what no key gives away: JSON that itself has a key for text, and types of exceptions that are sentences.

    The value becomes null, its key stays.
    """
    pattern = _json_with_text(content.last_words)
    for name in ("attributes", "resource", "events", "links"):
        held = spans[name].combine_chunks()
        is_map = pa.types.is_map(held.type)
        if (kept := _without(held if is_map else held.values.field("attributes"), pattern)) is not None:
            column = kept if is_map else _with_attributes(held, kept)
            spans = spans.set_column(spans.schema.get_field_index(name), name, column)
    return spans


def _without(maps: pa.MapArray, pattern: str) -> pa.MapArray | None:
    """Maps without the texts among their values; None where they have none."""
    values = maps.items
    rows = np.flatnonzero(pc.or_(pc.starts_with(values, "{"), pc.starts_with(values, "[")).fill_null(False))
    rows = _matching(values, rows, pattern)
    names = maps.keys.dictionary if pa.types.is_dictionary(maps.keys.type) else maps.keys
    known = np.flatnonzero(pc.is_in(names, value_set=pa.array(["exception.type", "error.type"])))
    if len(known) and pa.types.is_dictionary(maps.keys.type):
        known = np.flatnonzero(np.isin(maps.keys.indices, known))
    rows = np.concatenate([rows, _matching(values, known, NO_CLASS)])
    if not len(rows):
        return None
    mask = np.zeros(len(values), np.bool_)
    mask[rows] = True
    return pa.MapArray.from_arrays(maps.offsets, maps.keys, pc.if_else(pa.array(mask), pa.scalar(None, values.type), values))


def _matching(values: pa.Array, rows: Any, pattern: str) -> Any:
    """Those of the rows whose value matches."""
    return rows[np.asarray(pc.match_substring_regex(values.take(pa.array(rows)), pattern).fill_null(False))] if len(rows) else rows


def _with_attributes(held: pa.ListArray, maps: pa.MapArray) -> pa.ListArray:
    """Events or links with other attributes."""
    fields = [field.name for field in held.values.type]
    inner = [maps if name == "attributes" else held.values.field(name) for name in fields]
    return pa.ListArray.from_arrays(held.offsets, pa.StructArray.from_arrays(inner, names=fields))


@functools.cache
def _json_with_text(last_words: tuple[str, ...]) -> str:
    """A key of JSON, itself within JSON or not, whose last word says that text, or what holds text, is behind it."""
    plain = "|".join(f"[{word[0]}{word[0].upper()}]{word[1:]}" for word in last_words)
    camel = "|".join(word.capitalize() for word in last_words)
    return rf'"(?:(?:[^"]*[^"a-zA-Z])?(?:{plain})|[^"]*[a-z](?:{camel}))\\*"\s*:\s*\\*["\[{{]'


def _says_content(key: str, content: Content) -> bool:
    words = [word.lower() for word in WORDS.findall(key)]
    return bool(words) and words[-1] in content.last_words and not any(word in content.counts for word in words)
