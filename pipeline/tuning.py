"""What streams of evidence are tuned to: by how much each scale is widened, and which deploys their epochs begin at. Plain values."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.inference import calibration, scale

NOTED_FOR = timedelta(hours=24)

Reals = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Pair = tuple[str, str]


class Deploy(NamedTuple):
    """An engine's version that serves most requests of a model on a hardware from a block's beginning on; the first seen is no change."""

    model: str | None
    hardware: str | None
    engine: str
    engine_version: str
    since: datetime
    is_change: bool

    def words(self) -> str:
        """`since the deploy of vllm 0.12.1 at 2026-03-02 14:05 UTC`."""
        return f"since the deploy of {self.engine} {self.engine_version} at {self.since:%Y-%m-%d %H:%M} UTC"


@dataclass(frozen=True, slots=True)
class Tuning:
    """`phis`: by lever, metric and base blocks taken together, what the scale is widened by; None where splits found nothing that holds.

    `deploys` that are changes, in the order of their time.
    """

    phis: Mapping[tuple[str, str, int], float | None] = field(default_factory=dict)
    deploys: Sequence[Deploy] = ()

    def phi(self, pairs: Sequence[Pair], metrics: Sequence[str], multiple: npt.NDArray[np.int64]) -> Reals:
        """What each pair's metrics' scale is widened by, pair by pair; NaN where nothing holds."""
        if not self.phis:
            return np.full(len(pairs) * len(metrics), scale.PHI)
        known: dict[tuple[str, int], list[float]] = {}
        for lever, length in {(lever, int(length)) for (lever, _), length in zip(pairs, multiple, strict=True)}:
            found = (self.phis.get((lever, metric, length), scale.PHI) for metric in metrics)
            known[lever, length] = [np.nan if phi is None else phi for phi in found]
        rows = [known[lever, int(length)] for (lever, _), length in zip(pairs, multiple, strict=True)]
        return np.array(rows, np.float64).reshape(-1)

    def is_new(self, pairs: Sequence[Pair], until: Sequence[datetime], taking: Truths, ended_at: datetime) -> Truths:
        """Which of the pairs that take the block that ends at `ended_at` take their first one since a deploy."""
        new = np.zeros(len(pairs), np.bool_)
        newest = max((one.since for one in self.deploys if one.since < ended_at), default=None)
        if newest is None:
            return new
        for place in np.flatnonzero(taking).tolist():
            if until[place] <= newest:
                deploy = self.newest(pairs[place][1], ended_at)
                new[place] = deploy is not None and until[place] <= deploy.since
        return new

    def newest(self, segment: str, ended_at: datetime) -> Deploy | None:
        """The newest deploy before `ended_at` of what serves a segment; None where there was none."""
        keys = json.loads(segment)
        if "segment" in keys:  # `other` has many models
            return None
        place = (keys.get("model"), keys.get("hardware"))
        return next((one for one in reversed(self.deploys) if one.since < ended_at and (one.model, one.hardware) == place), None)

    def notes(self, segments: Collection[str], ended_at: datetime) -> dict[str, str]:
        """Of the segments whose deploy is not a day ago, since which one their evidence counts."""
        if not any(ended_at - NOTED_FOR < one.since < ended_at for one in self.deploys):
            return {}
        found = ((segment, self.newest(segment, ended_at)) for segment in segments)
        return {segment: one.words() for segment, one in found if one is not None and one.since > ended_at - NOTED_FOR}


PLAIN = Tuning()


def widened(phi: Reals) -> Reals:
    """What a scale is multiplied by: the widest that was tried, where nothing holds."""
    return np.where(np.isfinite(phi), phi, calibration.PHIS[-1])
