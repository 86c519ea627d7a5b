"""Ids of requests, drawn from a seed."""

from __future__ import annotations

import hashlib
from typing import NamedTuple


class Ids(NamedTuple):
    """A request's trace, its caller's span, and the key that it has everywhere else."""

    trace_id: bytes
    parent_span_id: bytes
    request_key: bytes


class IdSource:
    """Ids, one request's after another's; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._key = seed.to_bytes(8, "big", signed=True)
        self._drawn = 0

    def drawn(self) -> Ids:
        """The next request's."""
        self._drawn += 1
        entropy = hashlib.blake2b(self._drawn.to_bytes(8, "big"), digest_size=40, key=self._key).digest()
        return Ids(entropy[:16], entropy[16:24], entropy[24:])
