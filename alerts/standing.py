"""Where a stream stands, what else is known of it at a block's end, and what is said of it: plain values between the steps of judging."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from alerts.levers import Action, State, Verdict

NO_COUNTS: Mapping[str, int] = MappingProxyType({})
NO_QUALITY = "quality not measured"


class Standing(NamedTuple):
    """Where a stream stood before this block.

    `cause` is the reason code that switched it off and `advised` the action that was advised then, or with `enable` that it may come back;
    `confirmed_at` is the last block whose numbers said so. `counts` are the blocks in a row that each gate and each advice has held.
    `untold_since` is since when what stands has been in the shadow, where nobody was told of it; None where it was told, or nothing stands.
    """

    state: State
    state_since: datetime
    streak: int = 0
    reason_code: str = ""
    cause: str = ""
    advised: Action | None = None
    confirmed_at: datetime | None = None
    counts: Mapping[str, int] = NO_COUNTS
    untold_since: datetime | None = None


class Judgment(NamedTuple):
    """What one block's end says. The state changed where `state` differs from the standing's.

    `is_confirmed`: the numbers of this block speak for the recommendation that stands. `is_raised`: a recommendation that stood asks for
    something else now, or people are told of it at last. `is_widened`: more traffic is advised. `cause` is what turned the stream off,
    where that is another than the reason code of what is raised.
    """

    verdict: Verdict
    action: Action
    reason_code: str
    reason: str
    state: State
    state_since: datetime
    streak: int
    counts: Mapping[str, int] = NO_COUNTS
    is_confirmed: bool = False
    is_raised: bool = False
    is_widened: bool = False
    cause: str | None = None


class Seen(NamedTuple):
    """What is known of a stream beside its effects.

    `in_use` says whether treated traffic is there: False where it was seen to be gone, None where that is not known. `setting` is what the
    lever was set to since the stream's state began, None where it was not changed. `used` tells both in numbers. `quality` is what the
    policy's quality gate says, in a sentence; `quality_doubt` that it ought to say more: too few repeats, or too old ones. `again` says
    why the stream has to be judged again, such as another lever that was set otherwise.
    """

    in_use: bool | None = None
    setting: str | None = None
    used: str = ""
    quality: str = NO_QUALITY
    quality_doubt: bool = False
    again: str | None = None


NOTHING_SEEN = Seen()


def after(before: Standing, judgment: Judgment, decided_at: datetime | None = None) -> Standing:
    """Where a stream stands after a judgment; what switched it off is remembered until it is on again."""
    cause, advised, confirmed_at = before.cause, before.advised, before.confirmed_at
    is_opened = judgment.state == "off_recommended" and (judgment.is_raised or before.state != "off_recommended")
    if is_opened:
        cause, advised = judgment.cause or judgment.reason_code, judgment.action
    elif judgment.state == "probation":
        waits = judgment.action == "enable" or (judgment.reason_code == "stale" and before.advised == "enable")
        advised = "enable" if waits else None
    elif judgment.state == "on" and before.state != "on":
        cause, advised, confirmed_at = "", None, None
    if judgment.is_confirmed:
        confirmed_at = decided_at or judgment.state_since
    untold_since = None if judgment.is_raised or judgment.state != before.state else before.untold_since
    code, counts = judgment.reason_code, judgment.counts
    return Standing(judgment.state, judgment.state_since, judgment.streak, code, cause, advised, confirmed_at, counts, untold_since)
