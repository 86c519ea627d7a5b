"""One text for one value: JSON with sorted keys and no spaces, and the hashes made from it."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def text(value: Any) -> str:
    """A value as JSON text that is the same whenever the value is."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """The SHA-256 of the canonical text, as 64 hex digits."""
    return hashlib.sha256(text(value).encode()).hexdigest()
