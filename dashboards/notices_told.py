"""Rows of flips in, what each decided, on what evidence, how urgent it is and what to do about it out, in words."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from dashboards import notice_evidence, theme
from dashboards.choice import of_lever, title
from dashboards.notice_evidence import Evidence
from dashboards.notice_steps import Steps, steps
from dashboards.notices_sent import Sent
from dashboards.silences_shown import SilenceShown
from dashboards.standing import words

_CSS = {"off_recommended": "bad", "on": "good"}


@dataclass(frozen=True)
class Told:
    """One flip as the page shows it. `stands` says for how long it was so, `silences` hold it back now."""

    flip_id: str
    lever: str
    policy: str
    title: str
    segment_url: str
    own_url: str
    state_before: str
    state_after: str
    action: str
    severity: str
    is_shadow: bool
    decided_at: datetime
    when: str
    ago: str
    stands: str
    reason: str
    urgency: str
    css: str
    served: str
    steps: Steps
    commands_note: str
    evidence: list[Evidence]
    besides: list[tuple[str, str]]
    silence_command: str
    silence_url: str
    sent: list[Sent] = field(default_factory=list)
    silences: list[SilenceShown] = field(default_factory=list)

    @property
    def nobody(self) -> str:
        """Why nobody was told of it."""
        if self.is_shadow:
            return "Its policy is in shadow: it is judged and stored, and nobody is told."
        if self.silences:
            return "Sent to nobody yet: a silence lasts."
        return "Sent to nobody: no receiver asks for it, or it was over before one could be told."


def told(row: Mapping[str, Any], now: datetime, sent: Sequence[Sent], silences: Sequence[SilenceShown]) -> Told:
    """One row of `page_notices` for reading."""
    keys, notice = json.loads(row["segment"]), json.loads(row["notice"])
    after = row["state_after"]
    holding = [one for one in silences if one.is_about(row, keys)] if after in ("off_recommended", "probation") else []
    return Told(
        row["flip_id"],
        words(row["lever"]),
        row["policy"],
        title(keys),
        f"segment?{urlencode({**of_lever(keys, row['lever']), 'lever': row['lever']})}",
        f"notices?{urlencode({'flip': row['flip_id']})}",
        row["state_before"].replace("_", " "),
        after.replace("_", " "),
        (row["action"] or "").replace("_", " "),
        row["severity"] or "",
        bool(row["shadow"]),
        row["decided_at"],
        theme.clock(row["decided_at"], now),
        theme.age((now - row["decided_at"]).total_seconds()),
        _stands(row, now),
        row["reason"],
        notice_evidence.urgency(notice),
        "quiet" if row["shadow"] else _CSS.get(after, "quiet"),
        notice_evidence.served(notice),
        _steps(row["flip_id"], notice, after),
        notice.get("commands_note") or "",
        notice_evidence.evidence(notice),
        notice_evidence.besides(notice),
        _command(row, keys, notice),
        f"notices?{urlencode({'flip': row['flip_id']})}#silence",
        list(sent),
        holding,
    )


def _steps(flip_id: str, notice: Mapping[str, Any], after: str) -> Steps:
    """What the notice says is to be done for its action, where it says so; an older one says only the way back."""
    found = steps(flip_id, notice, after)
    if "steps" not in notice:
        return found
    commands = [(one["engine"], one["text"]) for one in notice.get("commands") or []]
    return replace(found, rollback=list(notice["steps"]), commands=commands)


def _stands(row: Mapping[str, Any], now: datetime) -> str:
    if row["action"] == "widen":
        return "advice that asks for nothing that ends"
    if row["followed_at"] is None:
        return "stands now"
    lasted = theme.age((row["followed_at"] - row["decided_at"]).total_seconds())
    return f"until {theme.clock(row['followed_at'], now)}, for {lasted}"


def _command(row: Mapping[str, Any], keys: Mapping[str, str], notice: Mapping[str, Any]) -> str:
    said = (notice.get("how_to") or {}).get("silence")
    if isinstance(said, str):
        return said
    named = [part for key, value in keys.items() for part in ("--segment", f"{key}={value}")]
    return shlex.join(["leverwatch", "silence", "add", "--lever", row["lever"], "--policy", row["policy"], *named, "--for", "8h"])
