"""Requests that are to be settled in, what the store knows of their time out: who ran beside them, and what their replicas said."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import polars as pl

from pipeline import replica_load
from queries import files, ranged, settling
from queries.store import Store

FIRST, LAST = timedelta(minutes=5), timedelta(minutes=1)  # how far before and after requests a sample may say something of them
AROUND = (*settling.KEY, *(name for name in replica_load.AROUND if name not in settling.KEY))
BESIDE = ", ".join("map_entries(arms) as arms" if name == "arms" else name for name in AROUND)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known around some requests: `around`, other requests under way while they were (columns AROUND), `samples` of their time,
    `sampled`, the replicas that send spans of a part of their requests, and `recent`, sums of requests settled shortly before."""

    around: pl.DataFrame
    samples: pl.DataFrame
    sampled: list[str]
    recent: pl.DataFrame

    def beside(self, some: pl.DataFrame, requests: pl.DataFrame) -> pl.DataFrame:
        """Who ran beside some of the requests: `around`, and the others of these."""
        if len(some) == len(requests):
            return self.around
        others = requests.join(some.select(settling.KEY), on=settling.KEY, how="anti").select(AROUND)
        return pl.concat([self.around, others], how="vertical_relaxed")


def read(store: Store, requests: pl.DataFrame) -> Surroundings:
    """What the store knows around these requests."""
    since, until = requests.select(pl.col("started_at").min(), pl.col("ended_at").max().alias("until")).row(0)
    same = " and ".join(f"s.{name} = r.{name}" for name in settling.KEY)
    with store.snapshot() as seen:
        seen.using(requests.select(settling.KEY), "create temp table settling_now as select * from incoming")
        around = seen.frame(
            f"select {BESIDE} from ({ranged.overlapping(store, seen, since, until)}) r "
            f"where started_at <= $until and ended_at >= $since and not exists (select 1 from settling_now s where {same})",
            {"since": since, "until": until},
        )
        samples = seen.frame(files.question("settle_samples"), {"since": since - FIRST, "until": until + LAST})
        sampled = seen.frame(files.question("settle_sampled"))["replica"].to_list()
        recent = seen.frame(files.question("guard_recent"), {"since": since - FIRST, "until": until})
    return Surroundings(around, samples, sampled, recent)
