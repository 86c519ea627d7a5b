"""Attribute keys and texts in, which of them hold what people wrote and models answered out: dropped unless asked for."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable

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


def _says_content(key: str, content: Content) -> bool:
    words = [word.lower() for word in WORDS.findall(key)]
    return bool(words) and words[-1] in content.last_words and not any(word in content.counts for word in words)
