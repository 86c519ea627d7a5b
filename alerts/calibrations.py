"""An effect in, what keeps its evidence from being acted on out: a scale that is not known yet, or that a day of contrasts disproved."""

from __future__ import annotations

from alerts import wording
from alerts.carried import WITH_EVIDENCE
from alerts.effects import Effect

UNSCALED, UNCALIBRATED = "unscaled", "uncalibrated"
MOST_SPREAD, MOST_NEIGHBORS = 1.2, 0.3  # those of `pipeline.inference.calibration`, which a test holds equal
BLOCK_S = 300
NO_SCALE = "how much its blocks vary by themselves is known after 48 comparisons, each of 100 requests of control and 5 min at least"


def is_unscaled(effect: Effect) -> bool:
    """Whether arms are compared and no evidence is there yet: an interval alone is looked at far too often to act on it."""
    is_awaited = effect.basis == "control" and effect.metric in WITH_EVIDENCE
    return is_awaited and not effect.evidence_below and not effect.evidence_above


def unscaled(effect: Effect) -> tuple[str, str] | None:
    """(reason code, sentence) where the interval alone says that the lever loses, and no evidence is there yet."""
    if not is_unscaled(effect) or effect.gain_high is None or effect.gain_high >= 0:
        return None
    return UNSCALED, f"{wording.compared(effect)}; not decided yet: {NO_SCALE}"


def doubt(effect: Effect) -> tuple[str, str] | None:
    """(reason code, sentence) where an effect's stream is uncalibrated: what was seen, and what mends it; None where it is not."""
    if not effect.uncalibrated:
        return None
    seen = []
    if effect.contrast_spread is not None:
        seen.append(f"spread {effect.contrast_spread:.2f} of at most {MOST_SPREAD:g}")
    if effect.contrast_neighbors is not None:
        seen.append(f"neighbors' correlation {effect.contrast_neighbors:.2f} of at most {MOST_NEIGHBORS:g}")
    numbers = ", ".join(seen) or "splits of one arm found no scale that holds"
    minutes = BLOCK_S * (effect.blocks_together or 1) // 60
    mends = "`leverwatch calibrate` finds a scale that holds, or longer blocks"
    return UNCALIBRATED, f"{wording.label(effect.metric)}: a day of contrasts of {minutes} min is uncalibrated: {numbers}; {mends}"
