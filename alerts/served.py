"""A lever's segment and some blocks in; who serves it, what share of the traffic is in it, and what that loses meanwhile, out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from alerts import block_sums, decided, wording
from alerts.block_sums import LEAST_REQUESTS, NOTHING, BlockSums
from alerts.effects import Effect
from queries import files
from queries.store import Store

MOST_REPLICAS = 5
WINDOW = timedelta(hours=2)
WHOLE = "e2e_s"


class Served(NamedTuple):
    """Who serves a segment: engines and gateways by name, and the replicas of an arm, busiest first.

    Shares are ratios: of the segment's requests that are of the arm, and of all requests. `lost_s` is whole time above control's level of
    1,000 requests, below 0 where they take less; None without control.
    """

    engines: tuple[str, ...]
    arm: str
    replicas: tuple[str, ...]
    since: datetime
    until: datetime
    requests_per_hour: float
    share_of_segment: float | None
    share_of_all: float | None
    lost_s: float | None

    def plain(self) -> dict[str, Any]:
        """The keys that a notice has of it."""
        lost_s_per_hour = None if self.lost_s is None else self.lost_s * self.requests_per_hour / 1000.0
        spans = {"since": wording.utc(self.since), "until": wording.utc(self.until)}
        impact = {"requests_per_hour": self.requests_per_hour, "share_of_segment": self.share_of_segment, "share_of_all": self.share_of_all}
        impact |= {"lost_s_per_1k_requests": self.lost_s, "lost_s_per_hour": lost_s_per_hour}
        rounded = {name: None if number is None else float(f"{number:.4g}") for name, number in impact.items()}
        served = {"engines": list(self.engines), "arm": self.arm, "replicas": list(self.replicas[:MOST_REPLICAS])}
        return {
            "served_by": {**served, "more_replicas": max(0, len(self.replicas) - MOST_REPLICAS)},
            "impact": {**spans, **rounded},
        }


def served(store: Store, lever: str, segment: str, decisive: Effect | None, until: datetime) -> Served | None:
    """Who serves a segment up to a moment: since it turned, else for two hours; None where no request of it is kept."""
    turned = decided.turned_at(decisive) if decisive is not None else None
    since = turned if turned is not None and until - WINDOW < turned < until else until - WINDOW
    asked = {"since": since, "until": until}
    rows = store.rows(files.question("notice_replicas"), asked | {"lever": lever, "segment": segment})
    by_arm = _by_arm(rows)
    if not by_arm:
        return None
    arm = "treated" if "treated" in by_arm else max(by_arm, key=lambda name: sum(by_arm[name].values()))
    replicas = [name for name in by_arm[arm] if name is not None]
    fleet = store.rows(files.question("notice_engines"), asked | {"replicas": replicas or None})[0]
    mine = sum(by_arm[arm].values())
    all_arms = sum(sum(arm.values()) for arm in by_arm.values())
    sums = block_sums.read_arms(store, lever, [segment], [WHOLE], since, until).get(segment, BlockSums(()))
    return Served(
        tuple(sorted({*(fleet["engines"] or ()), *(fleet["gateways"] or ())})),
        arm,
        tuple(replicas),
        since,
        until,
        mine / (until - since).total_seconds() * 3600.0,
        mine / all_arms if all_arms else None,
        min(1.0, mine / fleet["requests"]) if fleet["requests"] else None,
        lost(sums),
    )


def lost(sums: BlockSums) -> float | None:
    """Seconds of whole time that 1,000 treated requests take above control's level of the same block; None without such a block."""
    control, over, requests = sums.blocks("control", WHOLE), 0.0, 0.0
    for start, one in sums.blocks("treated", WHOLE).items():
        other = control.get(start, NOTHING)
        if one.level is not None and other.level is not None and min(one.n, other.n) >= LEAST_REQUESTS:
            over, requests = over + one.n * (one.level - other.level), requests + one.n
    return 1000.0 * over / requests if requests else None


def _by_arm(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str | None, float]]:
    found: dict[str, dict[str | None, float]] = {}
    for row in rows:
        if row["requests"]:
            found.setdefault(row["arm"], {})[row["replica"]] = row["requests"]
    return found
