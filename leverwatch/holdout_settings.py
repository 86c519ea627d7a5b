"""`[[holdouts]]` of the configuration in, the shares of control that the pipeline holds the split of arms against out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from alerts.levers import LEVERS, unknown
from leverwatch.described import says
from pipeline import arm_split

Share = Annotated[float, msgspec.Meta(ge=0.001, le=0.999)]
Together = Annotated[float, msgspec.Meta(ge=1, le=10_000)]


class Holdout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The share of a lever's requests that are meant to be control, split by chance. The first that fits a segment counts."""

    lever: Annotated[str, says("the lever, such as `speculation`")]
    control_share: Annotated[Share, says("control's share of the requests of both arms")]
    model: Annotated[str, says("the model that it is about; empty: any")] = ""
    hardware: Annotated[str, says("the hardware that it is about; empty: any")] = ""
    requests_together: Annotated[Together, says("how many requests are put into an arm at once, as of a session")] = 1.0

    def __post_init__(self) -> None:
        if self.lever not in LEVERS:
            msg = f"[[holdouts]] {unknown('lever', self.lever, LEVERS)}"
            raise ValueError(msg)


def stated(holdouts: Sequence[Holdout]) -> tuple[arm_split.Holdout, ...]:
    """The same as the pipeline takes them."""
    return tuple(arm_split.Holdout(one.lever, one.control_share, one.model, one.hardware, one.requests_together) for one in holdouts)
