"""Rows of spans and when they came in, whose clock runs ahead out: said in the ledger's reasons, and once in the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from collectors.rows import Rows
from collectors.spool_records import Record

AHEAD_S = 60
SAID = f"ended more than {AHEAD_S} s after they came: the sender's clock runs ahead"


def ahead(found: Rows, records: Sequence[Record]) -> Iterator[tuple[int, str, int]]:
    """Of each body with spans that ended well after the body came: its number, what is the matter, how many spans.

    A clock that runs behind cannot be told from spans that are late.
    """
    ended_us = np.asarray(found.spans["ended_at"].cast(pa.int64()))
    latest_us = np.array([record.received_unix_nano // 1000 + AHEAD_S * 1_000_000 for record in records], np.int64)
    counts = np.bincount(found.arrival[ended_us > latest_us[found.arrival]], minlength=len(records))
    yield from ((body, SAID, int(counts[body])) for body in np.flatnonzero(counts).tolist())
