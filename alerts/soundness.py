"""Effects in, what of them is no number that can be judged out: NaN, infinity, or so large that sums of it are."""

from __future__ import annotations

from alerts.effects import Effects
from alerts.standing import Judgment, Standing
from alerts.wording import unconfirmed

NOT_A_NUMBER = "not_a_number"
LARGEST = 1e100
NUMBERS = (
    "value_a", "value_b", "gain", "gain_low", "gain_high", "coverage", "trapped_share", "turned_gain", "own_value", "margin",
    "control_share", "intended_control_share", "contrast_spread", "contrast_neighbors",
)  # fmt: skip
"""The columns of an effect that judging compares, tells, or sends."""


def unsound(effects: Effects) -> str | None:
    """The first number that is none, in a sentence; None where all can be judged."""
    for metric, effect in effects.items():
        for name in NUMBERS:
            number = getattr(effect, name)
            if number is not None and not abs(number) < LARGEST:
                return f"{name} of {metric} is {number:g}, which is no number to judge by"
    return None


def frozen(before: Standing, why: str) -> Judgment:
    """The verdict on a stream whose numbers are broken: frozen, in the state it had."""
    return Judgment("frozen", "hold", NOT_A_NUMBER, why + unconfirmed(before), before.state, before.state_since, 0)
