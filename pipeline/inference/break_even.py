"""Each bucket's gains per block in, out where a lever stops paying: a band that holds however often one looks.

A stream's buckets lie along a key such as the batch at admission, along which the gain falls (or rises) by assumption. The data may refute
that; then every bucket stands for itself. "Not resolved yet" is an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.inference import interval
from pipeline.inference.interval import Running

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]
PAYS, LOSES, OPEN = 1, -1, 0


@dataclass(frozen=True, slots=True)
class Band:
    """What is known of each bucket, arrays (streams, buckets) but the last.

    `low` and `high` hold the gain (ratio) at all looks and in all buckets together; `signs` is PAYS, LOSES or OPEN (not resolved yet);
    `is_refuted` (streams,) says that the gain does not go one way along the key.
    """

    low: Reals
    high: Reals
    signs: Whole
    is_refuted: Truths


def start(streams: int, buckets: int) -> Running:
    """Sums, arrays (streams, buckets), of an epoch that begins; `Running.add` takes the gains of a block, NaN where an arm was missing."""
    return Running(*np.zeros((3, streams, buckets)))


def restarted(sums: Running, is_new: Truths) -> Running:
    """The sums with the streams of `is_new` (streams,) begun anew: a deploy, another model or configuration, acceptance that moved.

    Forgetting goes by epochs: a weighted past would break the intervals. What the epoch before knew is for display.
    """
    kept = ~is_new[:, None]
    return Running(sums.n * kept, sums.s * kept, sums.ss * kept)


def band(
    sums: Running,
    alpha: float,
    *,
    falls: bool = True,
    kappa: Reals | float = 1.0,
    was_refuted: Truths | None = None,
    phi: float = interval.PHI,
) -> Band:
    """The band of every stream at level `alpha`; `falls` says which way the gain goes along the buckets.

    Anytime-valid t intervals (arXiv 2310.03722) at alpha / buckets, tightened along the key: a bucket gains at least what any bucket beyond
    it does. `kappa` inflates the variance for dependence between blocks. A refutation lasts as long as its epoch: `was_refuted` (streams,).
    """
    low, high = interval.avt(sums.n, sums.mean(), sums.variance(), alpha / sums.n.shape[1], phi, kappa)
    tight_low, tight_high = _tightened(low, high, falls)
    is_refuted: Truths = np.any(tight_low > tight_high, axis=1)
    if was_refuted is not None:
        is_refuted |= was_refuted
    low, high = np.where(is_refuted[:, None], low, tight_low), np.where(is_refuted[:, None], high, tight_high)
    signs = np.where(low > 0, PAYS, np.where(high < 0, LOSES, OPEN)).astype(np.int64)
    return Band(low, high, signs, is_refuted)


def settings(signs: Whole, is_on: Truths) -> Truths:
    """Whether the lever is to be on in each bucket: on where it pays, off where it loses, else as it is."""
    return np.where(signs == PAYS, True, np.where(signs == LOSES, False, is_on))


def contrary(signs: Whole, gains: Reals) -> Reals:
    """Each bucket's gain as evidence against `signs`, those of the epoch before: above 0 it speaks against them; NaN where they are OPEN.

    The contrast of the detectors that flag a band as stale.
    """
    return np.where(signs == OPEN, np.nan, -signs * gains)


def words(signs: Sequence[int], names: Sequence[str], *, falls: bool = True, is_refuted: bool = False) -> str:
    """A stream's band in a sentence: `pays up to 4-7, loses from 16-31 on, not resolved yet between`."""
    if OPEN in signs and len(set(signs)) == 1:
        return "not resolved yet in any bucket"
    if len(set(signs)) == 1:
        return "pays in every bucket" if PAYS in signs else "loses in every bucket"
    if is_refuted:
        told = ((PAYS, "pays in"), (LOSES, "loses in"), (OPEN, "not resolved yet in"))
        named = [(verb, ", ".join(name for name, sign in zip(names, signs, strict=True) if sign == of)) for of, verb in told]
        return "the gain does not go one way along the buckets: " + "; ".join(f"{verb} {of}" for verb, of in named if of)
    return _one_way(signs, names, falls)


def _one_way(signs: Sequence[int], names: Sequence[str], falls: bool) -> str:
    upward, downward = "up to {}", "from {} on"
    pays_words, loses_words = (upward, downward) if falls else (downward, upward)
    at_pays = [place for place, sign in enumerate(signs) if sign == PAYS]
    at_loses = [place for place, sign in enumerate(signs) if sign == LOSES]
    parts = []
    if at_pays:
        parts.append("pays " + pays_words.format(names[at_pays[-1] if falls else at_pays[0]]))
    if at_loses:
        parts.append("loses " + loses_words.format(names[at_loses[0] if falls else at_loses[-1]]))
    if OPEN in signs:
        parts.append("not resolved yet " + ("between" if at_pays and at_loses else "elsewhere"))
    return ", ".join(parts)


def _tightened(low: Reals, high: Reals, falls: bool) -> tuple[Reals, Reals]:
    """Bounds that use the order: the lower ones of buckets that gain less, the upper ones of buckets that gain more."""
    if not falls:
        low, high = low[:, ::-1], high[:, ::-1]
    low = np.maximum.accumulate(low[:, ::-1], axis=1)[:, ::-1]
    high = np.minimum.accumulate(high, axis=1)
    return (low, high) if falls else (low[:, ::-1], high[:, ::-1])
