"""A notice in, the effects that it was decided on, who serves the segment and how urgent it is out, in display units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dashboards import theme
from pipeline.metrics import by_name, judged


@dataclass(frozen=True)
class Evidence:
    """One effect that a notice gives: values with units, the gain with its interval, and how much is behind it."""

    metric: str
    title: str
    treated: str
    control: str
    gain: str
    interval: str
    n: str
    blocks: str
    basis: str
    note: str


def evidence(notice: Mapping[str, Any]) -> list[Evidence]:
    """The effects of a notice in its order, but that which decided first, where the notice says which."""
    decided = (notice.get("query") or {}).get("metric")
    return [_row(one) for one in sorted(notice.get("evidence") or [], key=lambda one: one["metric"] != decided)]


def urgency(notice: Mapping[str, Any]) -> str:
    """How much traffic it is about, and what that loses meanwhile, with the time that this is of; empty where the notice does not say."""
    impact = notice.get("impact") or {}
    named = (("share_of_segment", "of the segment's requests"), ("share_of_all", "of all requests"))
    shares = [f"{theme.percent(impact[name])} {of}" for name, of in named if impact.get(name) is not None]
    hourly = impact.get("requests_per_hour")
    parts = [" and ".join(shares)] if shares else []
    parts += [f"{theme.shown(hourly, '')} requests an hour"] if hourly is not None else []
    lost, lost_hourly = impact.get("lost_s_per_1k_requests"), impact.get("lost_s_per_hour")
    if lost is not None and lost > 0:
        each = f"{theme.shown(lost / 1000, 's')} longer each"
        parts.append(each + (f", {theme.shown(lost_hourly, 's')} an hour" if lost_hourly is not None else ""))
    elif lost is not None:
        parts.append("no request takes longer meanwhile")
    return f"{_period(impact)}{'; '.join(parts)}" if parts else ""


def _period(impact: Mapping[str, Any]) -> str:
    """`From 09:30 to 10:50 UTC: `, with dates where it is not of one day; empty where the notice does not say."""
    since, until = (datetime.fromisoformat(impact[name]) if impact.get(name) else None for name in ("since", "until"))
    return f"From {theme.between(since, until, until)}: " if since and until else ""


def served(notice: Mapping[str, Any]) -> str:
    """`vllm; treated on r1, r2 and 5 more`; empty where the notice does not say."""
    said = notice.get("served_by") or {}
    replicas = ", ".join(str(one) for one in said.get("replicas") or [])
    more = f" and {said['more_replicas']} more" if said.get("more_replicas") else ""
    where = f"{said.get('arm') or 'all'} on {replicas}{more}" if replicas else ""
    return "; ".join(part for part in (", ".join(said.get("engines") or []), where) if part)


def besides(notice: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a notice says beside its effects: where the time went, what came of a switch, and how its sums are checked again."""
    parts = (
        ("Budget ledger", (notice.get("ledger") or {}).get("said")),
        ("After the switch", notice.get("after_check")),
        ("Check its sums", (notice.get("how_to") or {}).get("verify")),
        ("No sums", notice.get("query_note")),
    )
    return [(name, str(said)) for name, said in parts if said]


def _row(effect: Mapping[str, Any]) -> Evidence:
    metric = judged().get(effect["metric"]) or by_name().get(effect["metric"])
    unit = metric.unit if metric else ""
    low, high = effect.get("interval") or (None, None)
    gain = effect.get("gain")
    counts = [(arm, effect.get(name)) for arm, name in (("treated", "n_treated"), ("control", "n_control")) if effect.get(name) is not None]
    return Evidence(
        effect["metric"],
        metric.title if metric else effect["metric"],
        theme.shown(effect.get("treated"), unit),
        theme.shown(effect.get("control"), unit),
        "no data" if gain is None else theme.signed_percent(gain),
        "" if low is None or high is None else f"{theme.signed_percent(low)} to {theme.signed_percent(high)}",
        ", ".join(f"{theme.count(n)} {arm}" for arm, n in counts),
        theme.count(effect.get("blocks")),
        effect.get("basis") or "",
        effect.get("note") or "",
    )
