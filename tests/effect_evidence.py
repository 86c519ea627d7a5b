"""An effect with an interval in, the same with evidence that says what the interval says out: for tests that are about neither."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from alerts.carried import WITH_EVIDENCE
from alerts.effects import NULLS, Effect

CERTAIN, NOTHING = 50.0, 0.0


def evident(effect: Effect) -> Effect:
    """The effect with evidence past each null that its interval lies wholly past; one that carries evidence, or never has any, as it is."""
    if effect.metric not in WITH_EVIDENCE or effect.basis != "control" or effect.evidence_below or effect.evidence_above:
        return effect
    if effect.gain_low is None or effect.gain_high is None:
        return effect
    below = [CERTAIN if effect.gain_high < null else NOTHING for null in NULLS]
    above = [CERTAIN if effect.gain_low > null else NOTHING for null in NULLS]
    return effect._replace(evidence_below=below, evidence_above=above)


def evident_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the table `effects` as `evident` makes an effect."""
    read = {name: row.get(name) for name in Effect._fields}
    told = evident(Effect(**read))
    return {**row, "evidence_below": told.evidence_below, "evidence_above": told.evidence_above}
