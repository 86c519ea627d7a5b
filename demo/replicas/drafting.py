"""Drafts drawn: a request's tokens in, the steps that they take and what of the drafts holds out."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from demo.replicas.serving import Speculation


class Drafted(NamedTuple):
    """A request's decode under speculation. A draft that holds counts, though the answer may end before it."""

    steps: int
    verify_steps: int
    accepted_by_position: tuple[int, ...]

    @property
    def accepted(self) -> int:
        """Accepted drafts, the step's own token not among them."""
        return sum(self.accepted_by_position)


@lru_cache(maxsize=256)
def survival(speculation: Speculation, temperature: float, factor: float = 1.0, later: float = 1.0) -> npt.NDArray[np.float64]:
    """The chance that at least 1, 2, ... drafts of a step hold; `later` is a factor for each position behind the first: a draft goes on
    from the drafts before it, and what it takes wrongly adds up."""
    given = np.array([speculation.acceptance[min(place, len(speculation.acceptance) - 1)] for place in range(speculation.draft_tokens)])
    given = given * factor * later ** np.arange(speculation.draft_tokens)
    holds: npt.NDArray[np.float64] = np.cumprod((given * max(0.0, 1 - speculation.temperature_slope * temperature)).clip(0, 1))
    holds.flags.writeable = False
    return holds


def tokens_per_step(speculation: Speculation, temperature: float = 0.0, factor: float = 1.0) -> float:
    """The tokens that a step gives on average. For one acceptance a at every position (1 - a^(k+1)) / (1 - a), arXiv 2211.17192."""
    return 1 + speculation.coverage * float(survival(speculation, temperature, factor).sum())


def drawn(rng: np.random.Generator, tokens: int, holds: npt.NDArray[np.float64], coverage: float) -> Drafted:
    """A decode of so many tokens; `holds` as `survival` gives it."""
    positions = len(holds)
    accepted = positions - holds[::-1].searchsorted(rng.random(tokens), side="right")
    is_drafting = None
    if coverage < 1:
        is_drafting = rng.random(tokens) < coverage
        accepted *= is_drafting
    steps = int((accepted + 1).cumsum().searchsorted(tokens)) + 1 if tokens else 0
    verify_steps = steps if is_drafting is None else int(np.count_nonzero(is_drafting[:steps]))
    with_so_many = np.bincount(accepted[:steps], minlength=positions + 1).tolist()
    at_least = accumulate(reversed(with_so_many[1:]))
    return Drafted(steps, verify_steps, tuple(at_least)[::-1])
