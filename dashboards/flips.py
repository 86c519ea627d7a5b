"""The newest flips and what became of their notices."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dashboards import theme
from dashboards.choice import title
from dashboards.notice_steps import Steps, steps
from dashboards.reader import Reader
from dashboards.standing import short
from queries import files

SHOWN_FLIPS = 12


@dataclass(frozen=True)
class Delivery:
    """The newest attempt to tell one receiver."""

    receiver: str
    words: str
    css: str


@dataclass(frozen=True)
class Flip:
    """One change of a lever's state in a segment."""

    flip_id: str
    lever: str
    segment: str
    title: str
    state_before: str
    state_after: str
    decided_at: datetime
    when: str
    reason: str
    css: str
    steps: Steps
    is_shadow: bool = False
    deliveries: list[Delivery] = field(default_factory=list)

    @property
    def short(self) -> str:
        """The reason's first clause."""
        return short(self.reason)


def newest(
    reader: Reader, now: datetime, lever: str | None = None, segment: str | None = None, since: datetime | None = None
) -> list[Flip]:
    """The newest flips first, those of a lever or a segment or of all, from a time on, each with the newest attempt per receiver."""
    found: dict[str, Flip] = {}
    asked = {"flips": SHOWN_FLIPS, "lever": lever, "segment": segment, "since": since}
    for row in reader.frame(files.question("page_flips"), asked).iter_rows(named=True):
        flip = found.setdefault(row["flip_id"], _flip(row, now))
        if row["receiver"] is not None:
            flip.deliveries.append(_delivery(row, now))
    return list(found.values())


def _flip(row: Mapping[str, Any], now: datetime) -> Flip:
    after = row["state_after"]
    return Flip(
        row["flip_id"],
        row["lever"],
        row["segment"],
        title(json.loads(row["segment"])),
        row["state_before"].replace("_", " "),
        after.replace("_", " "),
        row["decided_at"],
        theme.clock(row["decided_at"], now),
        row["reason"],
        "quiet" if row["is_shadow"] else "bad" if after == "off_recommended" else "good" if after == "on" else "quiet",
        steps(row["flip_id"], json.loads(row["notice"]), after),
        row["is_shadow"],
    )


def _delivery(row: Mapping[str, Any], now: datetime) -> Delivery:
    status = f" (HTTP {row['status_code']})" if row["status_code"] else ""
    if row["outcome"] == "delivered":
        return Delivery(row["receiver"], f"delivered at {theme.clock(row['attempted_at'], now)}{status}", "good")
    if row["outcome"] == "pending":
        return Delivery(row["receiver"], "waiting to be sent", "warn")
    said = f"attempt {row['attempt']} failed{status}" + (f": {row['error']}" if row["error"] else "")
    if row["outcome"] == "retrying" and row["next_attempt_at"]:
        return Delivery(row["receiver"], f"{said}; next at {theme.clock(row['next_attempt_at'], now)}", "warn")
    return Delivery(row["receiver"], f"{said}; given up" + (", the receiver is gone" if row["outcome"] == "gone" else ""), "bad")
