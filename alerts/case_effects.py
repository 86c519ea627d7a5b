"""A case's few numbers of one metric in, the whole `Effect` that judging reads out. Values in the metric's unit, gains as ratios."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from alerts.carried import WITH_EVIDENCE
from alerts.conditions import SCORES
from alerts.effects import NULLS, Effect
from alerts.streams import BLOCK

WINDOW_BLOCKS = 24
N_TREATED, N_CONTROL = 4000, 400
ENOUGH = 1e4  # a logarithm of M beyond any threshold
Count = Annotated[int, Meta(ge=0)]


class Given(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a case says of one metric; what it leaves out is as usual.

    `gain` is one number, an interval, or [low, gain, high]. `evident_above` and `evident_below` say beyond which gain there is all the
    evidence; without them it is the interval's, and with `is_unscaled` there is none yet. `basis` is `control` where there is a gain (of
    quality `evaluations`), else `premise`.
    """

    treated: float | None = None
    control: float | None = None
    gain: float | Annotated[tuple[float, ...], Meta(min_length=2, max_length=3)] | None = None
    evident_above: float | None = None
    evident_below: float | None = None
    is_unscaled: bool | None = None
    n_treated: Count | None = None
    n_control: Count | None = None
    blocks: Count | None = None
    coverage: Annotated[float, Meta(ge=0.0, le=1.0)] | None = None
    basis: str | None = None
    says: str | None = None
    grade: str | None = None
    note: str | None = None
    trap: str | None = None
    trapped_share: float | None = None
    permission: str | None = None
    permission_reason: str | None = None
    margin: float | None = None
    sample_ratio_off: bool | None = None

    def __post_init__(self) -> None:
        ends = self.gain if isinstance(self.gain, tuple) else () if self.gain is None else (self.gain,)
        if list(ends) != sorted(ends) or any(end > 1.0 for end in ends):
            msg = f"gain takes a ratio of at most 1, or an interval of such from low to high: 15 % is 0.15; got {self.gain}"
            raise ValueError(msg)

    def over(self, usual: Given) -> Given:
        """The same, and what is usual where it says nothing."""
        stated = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}
        return msgspec.structs.replace(usual, **stated)


def effect(metric: str, given: Given, until: datetime) -> Effect:
    """The effect at a block's end."""
    low, gain, high = _interval(given.gain)
    basis = given.basis or ("premise" if gain is None else SCORES if metric == "quality" else "control")
    without = basis in ("premise", "none")
    says = given.says or (None if high is None or basis != SCORES else "loses" if high < 0.0 else "pays")
    more: dict[str, Any] = {
        name: getattr(given, name)
        for name in ("grade", "trap", "trapped_share", "permission", "permission_reason", "margin", "sample_ratio_off")
    }
    return Effect(
        metric,
        until - WINDOW_BLOCKS * BLOCK,
        until,
        _else(given.blocks, WINDOW_BLOCKS),
        _else(given.n_treated, N_TREATED),
        _else(given.n_control, 0 if without else N_CONTROL),
        given.treated,
        given.control,
        gain,
        low,
        high,
        basis,
        1.0 if given.coverage is None else given.coverage,
        given.note,
        evidence_below=_evidence(metric, given, (low, high), above=False),
        evidence_above=_evidence(metric, given, (low, high), above=True),
        says=says,
        **more,
    )


def _interval(gain: float | tuple[float, ...] | None) -> tuple[float | None, float | None, float | None]:
    if gain is None:
        return None, None, None
    if isinstance(gain, int | float):
        return gain, gain, gain
    return gain[0], (gain[0] + gain[1]) / 2 if len(gain) == 2 else gain[1], gain[-1]


def _evidence(metric: str, given: Given, ends: tuple[float | None, float | None], *, above: bool) -> list[float] | None:
    """Evidence at every null on the near side of what is evident; None where none is kept of the metric, or none is there yet."""
    stated = (given.evident_below, given.evident_above)
    is_stated = stated != (None, None)
    if given.is_unscaled or (not is_stated and (metric not in WITH_EVIDENCE or ends[0] is None)):
        return None
    limit = stated[above] if is_stated else ends[not above]
    return [ENOUGH if limit is not None and (null <= limit if above else null >= limit) else 0.0 for null in NULLS]


def _else(number: int | None, usual: int) -> int:
    return usual if number is None else number
