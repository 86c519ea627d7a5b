"""A report per replica and what replicas are now in, the fleet's rows out: who stands out first, then those of most load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards import fleet_spread, theme
from dashboards.choice import Choice, details
from dashboards.fleet_outliers import Load, Outlier, load, outliers
from dashboards.fleet_peers import POOL, Group, groups
from pipeline.metrics import Metric, by_name

# What the table shows of each replica: the metric, and the column of the report that is shown (a percentile's, or its own).
COLUMNS: tuple[tuple[str, str], ...] = (
    ("requests_per_s", "requests_per_s"),
    ("output_tokens_per_s", "output_tokens_per_s"),
    ("concurrency", "concurrency"),
    ("queue_s", "queue_s_p95"),
    ("cache_hit_rate", "cache_hit_rate"),
    ("skipped_token_ratio", "skipped_token_ratio"),
    ("kv_usage", "kv_usage"),
    ("preemptions_per_1k_requests", "preemptions_per_1k_requests"),
    ("error_rate", "error_rate"),
)
LINK = (("kv_transfer_bytes_per_s", "kv_transfer_bytes_per_s"), ("interconnect_efficiency", "interconnect_efficiency"))
METRICS = (*(name for name, _ in (*COLUMNS, *LINK)), fleet_spread.NEEDS)
UNITS = ("s", "ratio", "bytes/s")  # those that a number is shown with; others stand in the heading
Row = Mapping[str, Any]
NOT_HEARD: Row = {
    **dict.fromkeys(("engine", "engine_version", "levers", "arms", "running", "waiting", "kv_usage")),
    **dict.fromkeys(("answered", "pairs", "prefilled", "versions"), 0),
}


@dataclass(frozen=True)
class Value:
    """One number of a replica: as stored, and for reading. None is no data."""

    metric: Metric
    value: float | None
    text: str
    n: int
    coverage: float | None
    note: str = ""

    @property
    def share(self) -> float | None:
        """Of ratios the part of a bar that is filled."""
        return min(1.0, max(0.0, self.value)) if self.value is not None and self.metric.unit == "ratio" else None


@dataclass(frozen=True)
class Replica:
    """One replica: what it is, what it did in the period, what it does now (None: nothing is heard of that), and what is odd of it."""

    name: str
    keys: dict[str, str | None]
    requests: int
    load: Load | None
    values: list[Value]
    link: list[Value]
    odd: list[Outlier]
    now: Row
    url: str
    group: Group | None = None

    @property
    def peers(self) -> str:
        """How many it is compared with, in words."""
        return self.group.words if self.group else "no peer"

    @property
    def role(self) -> str:
        """`prefill` where it only reads prompts that others answer."""
        return "prefill" if self.now["prefilled"] and not self.now["answered"] else "" if self.requests else "no request"

    @property
    def css(self) -> str:
        """How odd it is."""
        return "bad" if any(one.css == "bad" for one in self.odd) else "warn" if self.odd else ""

    @property
    def details(self) -> list[str]:
        """What it serves, in words."""
        return [self.keys.get("model") or "model unknown", *details(self.keys)]

    @property
    def settings(self) -> list[str]:
        """What its levers are set to, with the arm that it is in."""
        levers, arms = (self.now[name] or {} for name in ("levers", "arms"))
        told = {name: [levers.get(name), arms.get(name)] for name in {**levers, **arms}}
        return [f"{name.replace('_', ' ')}: {', '.join(filter(None, both))}" for name, both in sorted(told.items())]


def replicas(report: Sequence[Row], by_prompt: Sequence[Row], now: Sequence[Row], chosen: Choice) -> list[Replica]:
    """Every replica that had requests in the period or is heard now; `by_prompt` is the report by input bucket too."""
    alike = {id(row): group for group in groups(report, by_prompt, now) for row in group.rows}
    heard = {row["replica"]: row for row in now}
    found = [_replica(row, alike.get(id(row)), heard.get(row["replica"], NOT_HEARD), chosen) for row in report]
    known = {row["replica"] for row in report}
    found += [_silent(row, chosen) for row in now if row["replica"] not in known and _is_chosen(row, chosen)]
    return sorted(found, key=_order)


def value(row: Row, name: str, column: str) -> Value:
    """A metric of a report's row for reading."""
    metric, held = by_name()[name], row[column]
    n, note = row[f"{name}_n"] or 0, "p95" if column.endswith("_p95") else ""
    return Value(metric, held, theme.shown(held, metric.unit if metric.unit in UNITS else ""), n, row[f"{name}_coverage"], note)


def _replica(row: Row, group: Group | None, now: Row, chosen: Choice) -> Replica:
    share = load(row["requests"], [one["requests"] for one in group.rows]) if group else None
    odd = outliers(row, group.rows, share) if group else []
    keys = {key: row[key] for key in POOL}
    values, link = ([value(row, *pair) for pair in pairs] for pairs in (COLUMNS, LINK))
    name = row["replica"] or "no replica named"
    return Replica(name, keys, row["requests"], share, values, link, odd, now, _address(chosen, row["replica"]), group)


def _silent(row: Row, chosen: Choice) -> Replica:
    """A replica without a request of its own in the period: it reads prompts for others, or its samples alone are heard."""
    keys = {key: row[key] for key in POOL}
    return Replica(row["replica"], keys, 0, None, [], [], [], row, _address(chosen, row["replica"]))


def _address(chosen: Choice, replica: str | None) -> str:
    return chosen.changed("fleet", {"replica": replica})


def _order(replica: Replica) -> tuple[Any, ...]:
    worst = 0 if replica.css == "bad" else 1 if replica.odd else 2 if replica.requests else 3
    return worst, -len(replica.odd), -(replica.load.of_mean if replica.load else 0.0), -replica.requests, replica.name


def _is_chosen(row: Row, chosen: Choice) -> bool:
    """Whether a replica that is only heard belongs to what is chosen; of one that no request names the pool is not known."""
    return all((row[key] or "") == wanted for key, wanted in chosen.keys.items() if key in POOL)
