"""An effect in, what makes its scale one that is not to be acted on out: contrasts that a day long were not what it says."""

from __future__ import annotations

from alerts import wording
from alerts.effects import Effect

UNCALIBRATED = "uncalibrated"
MOST_SPREAD, MOST_NEIGHBORS = 1.2, 0.3  # those of `pipeline.inference.calibration`, which a test holds equal
BLOCK_S = 300


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
    return UNCALIBRATED, f"{wording.label(effect.metric)}: a day of contrasts of {minutes} minutes is uncalibrated: {numbers}; {mends}"
