"""An effect in, what keeps its contrast from deciding anything out: arms split otherwise than intended, or control replicas that stay."""

from __future__ import annotations

from alerts import wording
from alerts.effects import Effect

SAMPLE_RATIO, FIXED_CONTROL, ROTATION_UNSEEN = "sample_ratio", "fixed_control", "rotation_unseen"


def spoiled(effect: Effect) -> tuple[str, str] | None:
    """Why a contrast says nothing of the lever, as (reason code, sentence); None where it may. It accuses no lever, and clears none."""
    if effect.basis != "control":
        return None
    if effect.sample_ratio_off:
        return SAMPLE_RATIO, _split(effect)
    if is_refused(effect):
        return FIXED_CONTROL, f"{wording.compared(effect)}; not decided: {effect.permission_reason}"
    return None


def is_refused(effect: Effect) -> bool:
    """Whether control's replicas stay what they are, so that a contrast with them may not decide; where arms are split as intended."""
    return effect.basis == "control" and effect.permission == "refused" and not effect.sample_ratio_off


def unseen(effect: Effect) -> tuple[str, str] | None:
    """That control has not been watched for long enough to tell whether its replicas rotate; None where it has."""
    if effect.basis != "control" or effect.permission != "unseen":
        return None
    return ROTATION_UNSEEN, f"{wording.compared(effect)}; not decided yet: {effect.permission_reason}"


def _split(effect: Effect) -> str:
    """`control got 4.1 % of the last hours' requests, 5 % were intended: ...`."""
    seen, intended = (wording.value(share or 0.0, "ratio") for share in (effect.control_share, effect.intended_control_share))
    return f"control got {seen} of the last hours' requests, {intended} were intended: nothing is judged while the split is off"
