"""The types of notices: a flip's state and action in, the `type` of its webhook out."""

from __future__ import annotations

from typing import Literal

NoticeType = Literal["lever.disable", "lever.adjust", "lever.enable", "lever.widen", "lever.resolved", "evaluator.heartbeat", "test"]
OPENING: tuple[NoticeType, ...] = ("lever.disable", "lever.adjust", "lever.enable")
"""What asks for something that a `lever.resolved` later says to be over."""


def type_of(state_after: str, action: str | None) -> NoticeType:
    """What a flip is told as. A flip of a store from before actions were kept has none: it advised to disable."""
    if action == "widen":
        return "lever.widen"
    if state_after == "off_recommended" and action == "hold":  # its policy went into the shadow: it stands, and is told to nobody
        return "lever.resolved"
    if state_after == "off_recommended":
        return "lever.disable" if action in (None, "", "disable") else "lever.adjust"
    return "lever.enable" if state_after == "probation" and action == "enable" else "lever.resolved"
