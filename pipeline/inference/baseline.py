"""Step times with a lever and, measured earlier, without it in; the acceptance length out above which speculation pays at a batch.

AL*(b) = T_spec(b) / T_base(b) (the accounting of arXiv 2406.14066). The baseline is assumed, not observed beside the lever:
it holds for a week, for the same build, hardware and model, and is not stretched beyond the batches it was measured at.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

BASIS = "assumed_baseline"
MAX_AGE = timedelta(days=7)

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Site:
    """What a baseline was measured on."""

    engine_version: str
    hardware: str
    model: str


@dataclass(frozen=True, slots=True)
class Baseline:
    """Seconds of a step without the lever, `steps_s` (k,), at `batches` (k,), rising, 1 or more."""

    site: Site
    measured_at: datetime
    batches: Reals
    steps_s: Reals

    def at(self, batches: Reals) -> Reals:
        """Seconds of a step at these batches, linear in between; NaN beyond those measured."""
        return np.interp(batches, self.batches, self.steps_s, left=np.nan, right=np.nan)


def needed_acceptance_length(baseline: Baseline, batches: Reals, steps_s: Reals) -> Reals:
    """The acceptance length (bonus token included) above which speculation pays, where its own steps take `steps_s` at these batches."""
    return steps_s / baseline.at(batches)


def objection(baseline: Baseline, now: datetime, site: Site) -> str:
    """Why the baseline cannot be used now on this site; empty where it can."""
    age = now - baseline.measured_at
    if age > MAX_AGE:
        return f"the baseline is {age / timedelta(days=1):.1f} days old; at most {MAX_AGE.days} are taken"
    pairs = (("engine_version", baseline.site.engine_version, site.engine_version), ("hardware", baseline.site.hardware, site.hardware))
    differing = [f"{name} {was!r}, now {is_!r}" for name, was, is_ in (*pairs, ("model", baseline.site.model, site.model)) if was != is_]
    return f"the baseline was measured on another site: {'; '.join(differing)}" if differing else ""
