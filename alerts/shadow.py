"""A policy that has left the shadow: its judgment of a stream that stands untold in, the same told at last out."""

from __future__ import annotations

from datetime import datetime

from alerts import wording
from alerts.chain import Policy
from alerts.judge_off import RECOVERING
from alerts.standing import Judgment, Standing


def left(policy: Policy, before: Standing, judgment: Judgment, until: datetime) -> Judgment:
    """The judgment, raised where it stands by what was recommended in the shadow, so that people hear of it once.

    It takes a block whose numbers speak for it: what cannot be read now, or is recovering, is not told for the first time.
    """
    since = before.untold_since
    if since is None or policy.shadow or judgment.state != before.state or until <= since:
        return judgment
    reason = f"{judgment.reason}; judged in the shadow since {wording.utc(since)}, and told from now on"
    if judgment.is_raised:
        return judgment._replace(reason=reason)
    if before.state == "off_recommended" and judgment.is_confirmed and judgment.reason_code != RECOVERING:
        code, action = before.cause or judgment.reason_code, before.advised or "disable"
    elif before.state == "probation" and judgment.action == "enable":
        code, action = judgment.reason_code, judgment.action
    else:
        return judgment
    return judgment._replace(action=action, reason_code=code, reason=reason, state_since=until, is_raised=True)
