"""What is read of a lever in, its break-even elsewhere and its debt out, in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import polars as pl

from dashboards import break_even_chart, theme
from dashboards.choice import title
from dashboards.lever_read import Lever
from dashboards.lever_rows import keys_of

MOST = 12
_ORDER = ("resolved", "partly", "refuted", "stale")


def elsewhere(lever: Lever) -> list[tuple[str, str, str, str]]:
    """Where the lever stops paying in segments that are not shown: (segment, key, state, note), resolved ones first."""
    shown = lever.shown.segment if lever.shown else ""
    listed = [row for row in lever.break_even if row["segment"] != shown]
    told = {(row["segment"], row["key"]): row for row in reversed(listed)}.values()
    ranked = sorted(told, key=lambda row: (_ORDER.index(row["state"]) if row["state"] in _ORDER else 9, row["segment"], row["key"]))
    return [(title(keys_of(row["segment"])), break_even_chart.named(row["key"]), row["state"], row["note"]) for row in ranked[:MOST]]


def debts(lever: Lever) -> list[dict[str, Any]]:
    """What of the lever went on against advice; those that lost most first."""
    owed = lever.asked.reader.debt(*lever.period).filter(pl.col("lever") == lever.name)
    return [_debt(row, lever.asked.now) for row in owed.head(MOST).iter_rows(named=True)]


def _debt(row: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    lost, share = row["lost_s"], row["compared_share"]
    compared = f" over {theme.percent(share)} of them" if share is not None else ""
    said = "not known: no control" if lost is None else f"{lost / 3600:,.1f} h" if lost > 0 else "none"
    return {
        "title": title(keys_of(row["segment"])),
        "since": theme.clock(row["since"], now),
        "stood": theme.age(row["stood_s"]),
        "requests": row["requests"],
        "tokens": row["tokens"],
        "lost": said,
        "lost_s": lost,
        "of": "" if lost is None else f"of request time{compared}",
    }
