"""Text in, the same for a terminal out: what would move its cursor, rename its window or turn a line around stands as its escape.

Names of models, tenants and replicas are a sender's text, comments a person's: shown as they are they would be commands to a terminal.
"""

from __future__ import annotations

import re

_ODD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text, its line breaks and tabs as they are."""
    return _ODD.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
