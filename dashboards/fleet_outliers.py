"""Replicas that are peers in numbers, who stands out from the others out: in words, with the interval of what was counted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from dashboards import theme
from dashboards.fleet_peers import ENOUGH

HOT = 1.25  # times the mean of the replicas that are alike, at the lower end of the interval
FEW = 100  # requests below which a replica is not compared
Z = 1.96
LONG_QUEUE_S, FULL, PREEMPTED = 0.1, 0.9, 10.0
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Load:
    """A replica's requests over the mean of all that are alike, with the 95 % interval that such a count has by chance."""

    of_mean: float
    low: float
    high: float
    is_hot: bool

    @property
    def interval(self) -> str:
        """The interval in words."""
        return f"{self.low:.2f} to {self.high:.2f}"


@dataclass(frozen=True)
class Outlier:
    """What is odd of a replica: in a few words, in a sentence, and its CSS class."""

    short: str
    text: str
    css: str = "warn"


def load(requests: int, alike: Sequence[int]) -> Load | None:
    """A replica's load among the counts of those that are alike, its own included; None: it stands alone."""
    mean = sum(alike) / max(len(alike), 1)
    if len(alike) < 2 or not mean:
        return None
    spread = Z * math.sqrt(max(requests, 1))
    low, high = max(0.0, requests - spread) / mean, (requests + spread) / mean
    return Load(requests / mean, low, high, low > HOT and sum(alike) >= FEW)


def outliers(row: Row, alike: Sequence[Row], load: Load | None) -> list[Outlier]:
    """What is odd of a replica beside its peers, `alike` with itself; each row has the columns of a report.

    What is held against fewer than `ENOUGH` peers says so.
    """
    if row["requests"] < FEW:
        return []
    others = [one for one in alike if one is not row and one["requests"] >= FEW]
    held = [*_load(load, len(alike)), *_errors(row, others), *_queue(row, others), *_cache(row, others)]
    peers = len(alike) - 1
    if peers < ENOUGH:
        few = f"; it has {'one peer' if peers == 1 else f'{peers} peers'} alone, so this may be chance"
        held = [replace(one, text=f"{one.text}{few}") for one in held]
    return [*held, *_memory(row), *_link(row)]


def _load(load: Load | None, replicas: int) -> Iterator[Outlier]:
    if load is not None and load.is_hot:
        yield Outlier("hot", f"gets {load.of_mean:.2f} times the mean of {replicas} replicas alike ({load.interval})")


def _errors(row: Row, others: Sequence[Row]) -> Iterator[Outlier]:
    rest_n = sum(one["error_rate_n"] for one in others)
    if row["error_rate"] is None or not rest_n:
        return
    n, rest = row["error_rate_n"], sum((one["error_rate"] or 0) * one["error_rate_n"] for one in others) / rest_n
    together = (row["error_rate"] * n + rest * rest_n) / (n + rest_n)
    deviation = math.sqrt(together * (1 - together) * (1 / n + 1 / rest_n))
    more = row["error_rate"] - rest
    if more > 0.005 and more > 3 * deviation:
        low, high = more - Z * deviation, more + Z * deviation
        said = f"{theme.percent(row['error_rate'])} of its requests fail, {theme.percent(rest)} at its peers"
        yield Outlier("errors", f"{said} ({theme.percent(low)} to {theme.percent(high)} more)", "bad")


def _queue(row: Row, others: Sequence[Row]) -> Iterator[Outlier]:
    value, usual = row["queue_s_p95"], _usual(others, "queue_s_p95")
    if value is not None and usual is not None and value > LONG_QUEUE_S and value > 3 * usual:
        yield Outlier("queue", f"one request in twenty waits {theme.shown(value, 's')} and longer, {theme.shown(usual, 's')} at its peers")


def _cache(row: Row, others: Sequence[Row]) -> Iterator[Outlier]:
    value, usual = row["skipped_token_ratio"], _usual(others, "skipped_token_ratio")
    if value is not None and usual is not None and usual > 0.05 and value < usual / 2:
        yield Outlier("cache", f"skips {theme.percent(value)} of its prompts, {theme.percent(usual)} at its peers")


def _memory(row: Row) -> Iterator[Outlier]:
    if (row["kv_usage"] or 0.0) > FULL:
        yield Outlier("cache full", f"its KV cache is {theme.percent(row['kv_usage'])} full in the mean")
    if (row["preemptions_per_1k_requests"] or 0.0) >= PREEMPTED:
        yield Outlier("preempts", f"{row['preemptions_per_1k_requests']:.0f} preemptions per 1,000 requests")


def _link(row: Row) -> Iterator[Outlier]:
    if (row["interconnect_efficiency"] or 0.0) > 1.0:
        said = f"transfers fill {theme.percent(row['interconnect_efficiency'])} of the stated link: the statement or the count is wrong"
        yield Outlier("data error", said, "bad")


def _usual(others: Sequence[Row], name: str) -> float | None:
    known = [one[name] for one in others if one[name] is not None]
    return median(known) if known else None
