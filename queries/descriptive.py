"""A lever and a period in, its arms' sums by keys that are known only after a request was treated out, from requests."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from queries import files, ranged
from queries.store import Store

KEYS = ("cache_class", "output_bucket", "concurrency_bucket")
"""Keys that a lever changes: what differs between the arms of one value is no effect of the lever alone."""


def sums(store: Store, lever: str, since: datetime, until: datetime) -> pl.DataFrame:
    """One row per arm and value of every key: requests that count, numerator and denominator of `tpot`, `ttft`, `e2e` and `error`."""
    with store.snapshot() as seen:
        near = ranged.relation(store, seen, "requests", since, until)
        asked = {"lever": lever, "since": since, "until": until}
        return seen.frame(f"with requests as (\n{near}\n)\n{files.question('effect_descriptive')}", asked)
