"""Links and prices of the configuration in, the tables `links` and `prices` out, for those who ask by SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from datetime import datetime

import polars as pl

from collectors.facts import Link
from queries.store import Store

Schema = dict[str, pl.DataType | type[pl.DataType]]


@dataclass(frozen=True, slots=True)
class Price:
    """What a GPU costs an hour, in US dollars, from a time on (None: always)."""

    hardware: str
    usd_per_gpu_hour: float
    from_time: datetime | None


def write(store: Store, links: Sequence[Link], prices: Sequence[Price]) -> None:
    """Replaces both tables."""
    of_links: Schema = {"topology": pl.String, "hardware": pl.String, "peak_bytes_per_s": pl.Float64}
    of_prices: Schema = {"hardware": pl.String, "usd_per_gpu_hour": pl.Float64, "from_time": pl.Datetime("us", "UTC")}
    with store.write() as transaction:
        transaction.execute("delete from links")
        transaction.execute("delete from prices")
        transaction.insert("links", pl.DataFrame([astuple(one) for one in links], schema=of_links, orient="row"))
        transaction.insert("prices", pl.DataFrame([astuple(one) for one in prices], schema=of_prices, orient="row"))
