"""Meanings of configuration keys in, what `docs/configuration.md` prints of them out."""

from __future__ import annotations

import msgspec


def says(meaning: str) -> msgspec.Meta:
    """The meaning of a key, to stand in its annotation."""
    return msgspec.Meta(description=meaning)
