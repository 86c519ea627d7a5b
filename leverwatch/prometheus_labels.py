"""A segment's keys in, labels for Prometheus out: every key is there, short, printable, and two values are never shown as one."""

from __future__ import annotations

import hashlib
import json

from pipeline.segments import CELL_SEGMENT_KEYS

MOST_CHARACTERS = 100
OTHER = '{"segment":"other"}'
KEYS = CELL_SEGMENT_KEYS


def of_segment(segment: str) -> list[str]:
    """One value per key of `KEYS`: empty where the segment has none, `other` for what is added up."""
    if segment == OTHER:
        return ["other"] * len(KEYS)
    keys = json.loads(segment)
    return [bounded(str(keys.get(name) or "")) for name in KEYS]


def bounded(text: str) -> str:
    """A label's value: what cannot be printed is replaced and what is long is cut, with a digest behind it of what it was."""
    clean = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
    if clean == text and len(text) <= MOST_CHARACTERS:
        return text
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=4).hexdigest()
    return f"{clean[:MOST_CHARACTERS]}~{digest}"
