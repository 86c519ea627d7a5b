"""State changes and the effects behind them in, rows of `flips` with their notices out. What a notice adds is read from the store here."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from alerts import after_check, canonical, ledger
from alerts.chain import code_of
from alerts.culprits import ERRORS, culprit
from alerts.effects import Effect, Effects, effect_name
from alerts.notice import Flip, notice
from alerts.notice_types import OPENING, type_of
from alerts.served import served
from alerts.sums import ask
from queries.store import Store

log = logging.getLogger(__name__)


def flip_rows(store: Store, flips: Sequence[tuple[Flip, Effects]], now: datetime, base_url: str) -> list[dict[str, Any]]:
    """A row of `flips` for each change, in their order."""
    checks = after_check.newest(store) if any(flip.before.state in ("off", "probation") for flip, _ in flips) else {}
    turned_off = [flip for flip, _ in flips if flip.judgment.state == "off_recommended"]
    ledgers = ledger.read_all(store, [(flip.policy, flip.segment, flip.decided_at) for flip in turned_off])
    spent = {flip.flip_id: one.plain() for flip, one in zip(turned_off, ledgers, strict=True)}
    return [
        _row(store, flip, effects, checks.get((flip.policy.name, flip.segment)), spent.get(flip.flip_id), now, base_url)
        for flip, effects in flips
    ]


def _row(
    store: Store, flip: Flip, effects: Effects, checked: str | None, spent: dict[str, Any] | None, now: datetime, base_url: str
) -> dict[str, Any]:
    policy, decisive = flip.policy, effects.get(_decisive(flip))
    flip = _named(store, flip, decisive)
    sums = ask(store, policy.lever, flip.segment, decisive) if decisive else None
    recommends = type_of(flip.judgment.state, flip.judgment.action) in OPENING
    who = served(store, policy.lever, flip.segment, decisive, flip.decided_at) if recommends else None
    told = notice(flip, effects.values(), sums, now, base_url, who)
    told |= {"after_check": checked if flip.before.state in ("off", "probation") else None, "ledger": spent}
    return {
        "flip_id": flip.flip_id,
        "policy": policy.name,
        "lever": policy.lever,
        "segment": flip.segment,
        "state_before": flip.before.state,
        "state_after": flip.judgment.state,
        "decided_at": flip.decided_at,
        "reason": flip.judgment.reason,
        "action": flip.judgment.action,
        "severity": flip.severity,
        "shadow": policy.shadow,
        "notice": _text(told),
    }


def _text(told: dict[str, Any]) -> str:
    """The notice as JSON text. A number that JSON has no text for is left out: no flip is lost for what is told beside it."""
    try:
        return canonical.text(told)
    except ValueError:
        log.warning("flip %s: its notice has numbers that are none, which are left out", told["flip_id"])
        return canonical.text(_finite(told))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value


def _named(store: Store, flip: Flip, decisive: Effect | None) -> Flip:
    """The flip, which names the replica that makes the errors where the lever is accused of them."""
    if decisive is None or decisive.metric != ERRORS or flip.judgment.state != "off_recommended":
        return flip
    who = culprit(store, flip.policy.lever, flip.segment, decisive.since, decisive.until)
    return flip._replace(judgment=flip.judgment._replace(reason=f"{flip.judgment.reason}; {who}")) if who else flip


def _decisive(flip: Flip) -> str:
    """The effect whose sums stand behind the flip: its trigger's, else the benefit's."""
    policy = flip.policy
    for trigger in policy.disable_when:
        if code_of(policy, trigger) == flip.judgment.reason_code:
            return effect_name(trigger.metric)
    return effect_name(policy.expected_benefit.metric)
