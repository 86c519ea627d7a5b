"""Rows of cells by arm, block and metric in, sums that can be asked for a level over blocks out: what checks and ledgers are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from pipeline.metrics import by_name, of_quantile
from pipeline.segments import TOPOLOGY_LEVERS
from queries import files
from queries.store import Store

LEAST_REQUESTS = 5  # of an arm in a block
ADDITIVE = ("ratio", "mean", "share", "quantile")


class Sum(NamedTuple):
    """Sums of a metric's requests in one block."""

    n: float
    num: float
    den: float

    @property
    def level(self) -> float | None:
        """The metric's value; None without any."""
        return self.num / self.den if self.den > 0 else None


NOTHING = Sum(0.0, 0.0, 0.0)


class BlockSums:
    """The sums of one lever's segment, by arm, metric and block."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._sums: dict[tuple[str, str], dict[datetime, Sum]] = {}
        for row in rows:
            blocks = self._sums.setdefault((row["arm"], row["metric"]), {})
            blocks[row["block_started_at"]] = Sum(row["n"], row["num"], row["den"])

    def blocks(self, arm: str, metric: str) -> Mapping[datetime, Sum]:
        """The blocks in which an arm has the metric, in order."""
        return self._sums.get((arm, metric), {})

    def within(self, arm: str, metric: str, since: datetime, until: datetime) -> list[Sum]:
        """The sums of the blocks that begin in a period and hold enough requests."""
        found = self.blocks(arm, metric).items()
        return [one for start, one in found if since <= start < until and one.n >= LEAST_REQUESTS and one.den > 0]


def read(store: Store, lever: str, segment: str, metrics: Sequence[str], since: datetime, until: datetime) -> BlockSums:
    """The sums of a lever's segment in the blocks that begin in a period; arm `any` holds all requests there."""
    asked = {"lever": lever, "segment": segment, "metrics": list(metrics), "since": since, "until": until}
    frame = store.frame(files.question("around_cells"), asked | {"is_topology": lever in TOPOLOGY_LEVERS})
    return BlockSums(frame.iter_rows(named=True))


def read_arms(
    store: Store, lever: str, segments: Sequence[str], metrics: Sequence[str], since: datetime, until: datetime
) -> dict[str, BlockSums]:
    """The sums of the lever's arms in each of some segments, read together."""
    asked = {"lever": lever, "segments": list(segments), "metrics": list(metrics), "since": since, "until": until}
    frame = store.frame(files.question("effect_cells"), asked)
    parts = frame.partition_by("segment", as_dict=True)
    return {str(segment): BlockSums(part.iter_rows(named=True)) for (segment,), part in parts.items()}


def in_cells(metric: str) -> str | None:
    """Whose sums stand for a metric in cells: net ITL's are those of TPOT, of a percentile the mean's; None where none add up."""
    base = "tpot_s" if metric == "net_itl_s" else of_quantile(metric)
    row = by_name().get(base)
    return base if row is not None and row.kind in ADDITIVE and row.numerator else None
