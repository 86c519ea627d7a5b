"""A report's frame in, what it was answered from out, in words."""

from __future__ import annotations

import polars as pl

from leverwatch.connection import Connection

FROM_CELLS = (
    "answered from cells: percentiles are within 1 %, rates are of the requests that were seen, and the period is rounded outward to whole "
    "blocks of 300 s, or to the hours or days that are left of it"
)
OTHER = "{:,} segments came after as many as [segments] limit tells apart: they are the row `other`"


def told(connection: Connection, frame: pl.DataFrame, source: str = "auto") -> list[str]:
    """Sentences where cells answered, and not the requests themselves; and how many segments are `other`, where a row is of those.

    Raises:
        SqlError: the store cannot be asked.
    """
    texts = [name for name in frame.columns if frame.schema[name] == pl.String]
    if source != "cells" and not any((frame[name] == "cells").any() for name in texts if name.endswith("_provenance")):
        return []
    if not any((frame[name] == "other").any() for name in texts):
        return [FROM_CELLS]
    count = connection.sql("select count(*) as n from other_segments")["n"].item()
    return [FROM_CELLS, OTHER.format(count)] if count else [FROM_CELLS]
