"""How urgent a notice is: its data in, sentences on who serves it, how much traffic it is and what it loses meanwhile out."""

from __future__ import annotations

from datetime import datetime
from typing import Any

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400


def told(data: dict[str, Any], now: datetime | None = None) -> str:
    """`Decided 12 min ago. It concerns 84 % of the segment's requests, 1,240 an hour. Meanwhile a request takes 0.1 s longer: ...`."""
    parts = [_decided(data, now), _traffic(data.get("impact") or {}), _lost(data.get("impact") or {})]
    return " ".join(part for part in parts if part)


def replicas(data: dict[str, Any]) -> str:
    """`r1, r2, r3, r4, r5 and 7 more`; empty where none is known."""
    served = data.get("served_by") or {}
    names = ", ".join(str(name) for name in served.get("replicas") or ())
    more = served.get("more_replicas") or 0
    return f"{names} and {more} more" if names and more else names


def ago(seconds: float) -> str:
    """`12 min`, `3 h 5 min`, `2 days`."""
    if seconds < _HOUR_S:
        return f"{max(0, int(seconds // _MINUTE_S))} min"
    if seconds < _DAY_S:
        hours, rest = divmod(int(seconds // _MINUTE_S), 60)
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days = int(seconds // _DAY_S)
    return f"{days} days" if days > 1 else "1 day"


def _decided(data: dict[str, Any], now: datetime | None) -> str:
    text = data.get("decided_at")
    if not text:
        return ""
    moment = datetime.fromisoformat(text)
    since = f", {ago((now - moment).total_seconds())} ago" if now is not None and now >= moment else ""
    return f"Decided {moment:%Y-%m-%d %H:%M} UTC{since}."


def _traffic(impact: dict[str, Any]) -> str:
    shares = [
        f"{100 * impact[name]:.3g} % of {of}"
        for name, of in (("share_of_segment", "the segment's requests"), ("share_of_all", "all requests"))
        if impact.get(name) is not None
    ]
    rate = f", {_number(impact['requests_per_hour'])} an hour" if impact.get("requests_per_hour") else ""
    return f"It concerns {' and '.join(shares)}{rate}." if shares else ""


def _lost(impact: dict[str, Any]) -> str:
    lost, hourly = impact.get("lost_s_per_1k_requests"), impact.get("lost_s_per_hour")
    if lost is None or hourly is None:
        return ""
    if lost <= 0:
        return "They take no longer meanwhile."
    return (
        f"Meanwhile a request takes {_number(lost / 1000.0)} s longer: {_number(lost)} s per 1,000 requests, {_number(hourly)} s an hour."
    )


def _number(value: float) -> str:
    return f"{float(f'{value:.3g}'):,.10g}"
