"""Streams that have seen a day of blocks in, the same with blocks as long as that day asks for out; and the scale that it taught them.

Neighbors that are alike say the same thing twice. A pair's blocks are taken together until that is over, or its control has enough
requests. Where they become longer the day is played again at that length, so that no burn-in is lost; evidence begins anew.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline import evidence
from pipeline.evidence_families import ARMS, SUMS
from pipeline.evidence_streams import LAGS, ROTATION_S, Pair, Streams, Truths, Whole, restarted
from pipeline.inference import block_length, scale
from pipeline.inference.checking import Checks
from pipeline.measure import BLOCK_S, REQUESTS

BLOCKS_A_DAY = 86_400 // BLOCK_S
LIMIT_PAIRS = 200  # whose day is read at one block's end
DAY = timedelta(days=1)

Reals = npt.NDArray[np.float64]


def reach(length: int) -> int:
    """How many lags the scale of contrasts of so many base blocks each uses: an hour of them, and four at least."""
    return min(LAGS, scale.lags(BLOCK_S * length, ROTATION_S))


def due(streams: Streams) -> tuple[Pair, ...]:
    """The pairs whose length is to be chosen now: a day after they began, and once a day while a day's neighbors were too much alike."""
    asked = (streams.age >= BLOCKS_A_DAY) | ((streams.age < 0) & _is_alike(streams))
    return tuple(sorted(streams.pairs[place] for place in np.flatnonzero(asked).tolist())[:LIMIT_PAIRS])


def lengthened(streams: Streams, pairs: tuple[Pair, ...], days: Reals) -> Streams:
    """The streams with the length of these pairs chosen by their last day (see `sums`)."""
    chosen, alike = multiple(days, streams.family.needed)
    place = {pair: number for number, pair in enumerate(streams.pairs)}
    at = np.array([place[pair] for pair in pairs])
    longer = chosen > streams.multiple[at]
    streams = _asked(_marked(streams, at, alike), at)
    if not longer.any():
        return streams
    taught = _taught(streams, tuple(pair for pair, is_so in zip(pairs, longer, strict=True) if is_so), chosen[longer], days[longer])
    numbers = streams.numbers()
    numbers[at[longer]] = _marked(taught, np.arange(len(taught.pairs)), alike[longer]).numbers()
    return Streams.of_numbers(streams.family, streams.pairs, streams.until, numbers)


def multiple(days: Reals, needed: float = block_length.LEAST_CONTROL) -> tuple[Whole, Reals]:
    """(how many base blocks to take together, per pair; the correlation of neighbors where no length holds, per pair and raw metric, else
    NaN), from a day of base blocks (see `sums`).

    The longest that any metric asks for, so that all may share their blocks. A metric whose neighbors are alike at any length asks for
    none, but the first: then it is the longest there is. Where neighbors are hardly alike, or control has too few requests for any length,
    requests decide alone, block by block.
    """
    control_n, measured = days[:, :, 0, 1, 0], days[:, :, 1:]
    asked, alike = np.ones(len(days), np.int64), np.full((len(days), measured.shape[2]), np.nan)
    for number in range(measured.shape[2]):
        treated, control = (measured[:, :, number, arm][..., 1:3] for arm in range(len(ARMS)))
        found = block_length.choose(treated, control, control_n, needed)
        alike[found.is_alike, number] = found.correlation[found.is_alike]
        longest = np.where(found.is_alike & (number == 0), block_length.MULTIPLES[-1], 1)
        is_longer = found.is_settled & (found.multiple > found.by_requests)
        asked = np.maximum(asked, np.where(is_longer, found.multiple, longest))
    return asked, alike


def sums(streams: Streams, pairs: tuple[Pair, ...], cells: pl.DataFrame, ended_at: datetime) -> Reals:
    """The day before `ended_at`: (pairs, blocks, 1 + raw metrics, arms, SUMS), requests first; zeros where there is nothing.

    `cells` are as `evidence.advanced` takes them, with block_started_at.
    """
    names = (REQUESTS, *streams.family.raw)
    days = np.zeros((len(pairs), BLOCKS_A_DAY, len(names), len(ARMS), len(SUMS)))
    known = pl.DataFrame(pairs, schema=["lever", "segment"], orient="row").with_row_index("pair")
    placed = cells.filter(pl.col("arm").is_in(ARMS), pl.col("metric").is_in(names)).join(known, on=["lever", "segment"])
    block = (placed["block_started_at"] - (ended_at - DAY)).dt.total_seconds().to_numpy() // BLOCK_S
    metric, arm = (
        placed[column].replace_strict({word: place for place, word in enumerate(words)}, return_dtype=pl.Int64).to_numpy()
        for column, words in (("metric", names), ("arm", ARMS))
    )
    inside = (block >= 0) & (block < BLOCKS_A_DAY)
    where = tuple(one[inside] for one in (placed["pair"].to_numpy(), block, metric, arm))
    np.add.at(days, where, placed.select(SUMS).cast(pl.Float64).to_numpy()[inside])
    return days


def _is_alike(streams: Streams) -> Truths:
    """Which pairs' blocks could be longer, and have neighbors that are too much alike."""
    alike = streams.checks.is_alike().reshape(len(streams.pairs), len(streams.family.metrics))
    return np.asarray(alike.any(axis=1) & (streams.multiple < block_length.MULTIPLES[-1]))


def _marked(streams: Streams, at: Whole, alike: Reals) -> Streams:
    """The streams with metrics of the pairs at these places marked where no length holds, until a whole day says otherwise."""
    family, neighbors = streams.family, streams.checks.neighbors.reshape(len(streams.pairs), -1).copy()
    told = alike[:, [family.raw.index(of) for of in family.made_of.values()]]
    neighbors[at] = np.where(np.isfinite(told), told, neighbors[at])
    return replace(streams, checks=replace(streams.checks, neighbors=neighbors.reshape(-1)))


def _asked(streams: Streams, at: Whole) -> Streams:
    """The streams with the pairs at these places as asked: for good, or for a day where neighbors are alike."""
    age = streams.age.copy()
    age[at] = np.where(_is_alike(streams)[at], 0, -1)
    return replace(streams, age=age)


def _taught(streams: Streams, pairs: tuple[Pair, ...], lengths: Whole, days: Reals) -> Streams:
    """Streams of pairs that begin anew with longer blocks, and the scale that the day gives at that length."""
    new = Streams.start(streams.family, pairs)
    known = replace(new.scale.known, reach=np.repeat([reach(int(length)) for length in lengths], len(streams.family.metrics)))
    new = replace(new, multiple=lengths, age=np.full(len(pairs), -1, np.int64), scale=replace(new.scale, known=known))
    both: Truths = np.all(days[:, :, 0, :, 0] > 0, axis=2)
    for block in range(BLOCKS_A_DAY):
        new, _ = evidence.stepped(new, days[:, block, 1:].reshape(len(pairs), -1), days[:, block, 0, 1, 0], both[:, block], scale.PHI)
    return replace(restarted(new, np.ones(len(pairs), np.bool_)), checks=Checks.start(len(pairs) * len(streams.family.metrics)))
