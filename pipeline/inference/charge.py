"""Two arms' sums of times to the first token in, what each block of treated is charged with out: the time that the lever adds.

Whether it adds any is asked of all the blocks together. Were it asked of each, what chance holds against treated would be charged and what
chance gives back would not: a lever that does nothing would seem to do harm (docs/statistics.md).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]


def added_s(treated_n: Reals, treated_sum_s: Reals, control_n: Reals, control_sum_s: Reals, least_requests: float = 1.0) -> Reals:
    """Seconds added per request in each block (the last axis); negative in a block that had luck, 0 all along where none are added.

    Blocks in which an arm has fewer than `least_requests` are charged nothing.
    """
    known = (treated_n >= least_requests) & (control_n >= least_requests)
    with np.errstate(divide="ignore", invalid="ignore"):
        added = np.where(known, treated_sum_s / treated_n - control_sum_s / control_n, 0.0)
    is_added = (added * np.where(known, treated_n, 0.0)).sum(axis=-1, keepdims=True) > 0
    return np.where(is_added, added, 0.0)
