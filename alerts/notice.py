"""Notices: a policy, a flip's judgment and the effects behind it in, the webhook's `data` out, ready for JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec

from alerts import canonical, notice_commands, wording
from alerts.chain import Policy, code_of
from alerts.effects import Effect
from alerts.served import Served
from alerts.standing import Judgment, Standing
from alerts.sums import Sums, columns_of
from pipeline.metrics import judged

_CHAIN = (
    "measured_bottleneck",
    "enabling_condition",
    "receiving_budget",
    "expected_benefit",
    "failure_mode",
    "quality_gate",
    "disable_when",
    "re_enable_when",
)
NO_SUMS = "no sums of two arms stand behind this: other requests were compared, or none"


class Flip(NamedTuple):
    """A state change of one stream, with what it was decided on."""

    policy: Policy
    segment: str
    before: Standing
    judgment: Judgment
    decided_at: datetime

    @property
    def severity(self) -> str:
        """How much the flip matters: what its trigger says, of a recommendation that is over what the one that made it said."""
        policy = self.policy
        code = self.judgment.reason_code if self.judgment.state == "off_recommended" else self.before.cause
        found = next((trigger for trigger in policy.disable_when if code_of(policy, trigger) == code), None)
        return (found.severity if found else None) or policy.severity

    @property
    def flip_id(self) -> str:
        """32 hex digits, the same for the same change however often it is judged."""
        return canonical.digest([self.policy.name, self.policy.lever, self.segment, wording.utc(self.decided_at)])[:32]


def notice(
    flip: Flip, effects: Iterable[Effect], sums: Sums | None, as_of: datetime, base_url: str = "", served: Served | None = None
) -> dict[str, Any]:
    """What a receiver gets as `data`: the decision, its evidence, the chain, who serves it, how to go back, and how to check it."""
    policy, judgment = flip.policy, flip.judgment
    commands, note = notice_commands.commands(policy, judgment.action, served.engines if served else ())
    return {
        "flip_id": flip.flip_id,
        "policy": policy.name,
        "policy_version": str(policy.version),
        "lever": policy.lever,
        "segment": json.loads(flip.segment),
        "verdict": judgment.verdict,
        "action": judgment.action,
        "severity": flip.severity,
        "state_before": flip.before.state,
        "state_after": judgment.state,
        "decided_at": wording.utc(flip.decided_at),
        "expires_at": wording.utc(flip.decided_at + timedelta(seconds=policy.expires_after_s)),
        "reason_code": judgment.reason_code,
        "reason": judgment.reason,
        "evidence": [evidence(effect, sums) for effect in effects],
        "causal_chain": _chain(policy),
        "steps": notice_commands.steps(policy, judgment.action),
        "rollback": _rollback(policy, commands),
        "commands": commands,
        "commands_note": note,
        **(served.plain() if served else {"served_by": None, "impact": None}),
        "how_to": notice_commands.how_to(policy, flip.segment, flip.flip_id, base_url),
        "query": _query(sums, as_of),
        "query_note": None if sums else NO_SUMS,
        "links": {
            "flip": f"{base_url}/api/flips?flip_id={flip.flip_id}",
            "deliveries": f"{base_url}/api/deliveries?flip_id={flip.flip_id}",
            "verdicts": f"{base_url}/api/verdicts",
            "page": f"{base_url}/segment?{urlencode({**json.loads(flip.segment), 'lever': policy.lever})}",
            "notice": f"{base_url}/notices?{urlencode({'flip': flip.flip_id})}",
        },
    }


def evidence(effect: Effect, sums: Sums | None) -> dict[str, Any]:
    """One effect as evidence: values in the metric's unit, gain and coverage as ratios, null where not available."""
    metric = judged().get(effect.metric)
    wanted = columns_of(metric) if metric else set()
    return {
        "metric": effect.metric,
        "treated": effect.value_a,
        "control": effect.value_b,
        "gain": effect.gain,
        "interval": [effect.gain_low, effect.gain_high],
        "n_treated": effect.n_a,
        "n_control": effect.n_b,
        "blocks": effect.blocks,
        "basis": effect.basis,
        "coverage": effect.coverage,
        "provenance": {name: kinds for name, kinds in (sums.provenance if sums else {}).items() if name in wanted},
        "note": effect.note,
    }


def _chain(policy: Policy) -> dict[str, Any]:
    parts: dict[str, Any] = msgspec.to_builtins(policy)
    return {name: parts[name] for name in _CHAIN}


def _rollback(policy: Policy, commands: list[dict[str, str]]) -> dict[str, Any]:
    """How to go back; of the engines only those that commands are given for, which serve the segment as far as that is known."""
    whole: dict[str, Any] = msgspec.to_builtins(policy.rollback)
    named = {row["engine"] for row in commands}
    return whole | {"engine": {engine: text for engine, text in whole["engine"].items() if not named or engine in named}}


def _query(sums: Sums | None, as_of: datetime) -> dict[str, Any] | None:
    if sums is None:
        return None
    return {
        "metric": sums.metric,
        "sql": sums.question.sql,
        "params": dict(sums.question.params),
        "as_of": wording.utc(as_of),
        "columns": list(sums.columns),
        "result_hash": sums.result_hash,
    }
