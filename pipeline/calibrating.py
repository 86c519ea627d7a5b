"""Cells of one arm by replica in, what its scales must be widened by out: its replicas are split in two at random (A/A).

The halves are drawn anew each half hour, as a holdout that may decide rotates, so that what replicas differ by for good is noise as it is
in service. Contrasts and scales are those of `pipeline.evidence`, with a phi of 1. Arms that are split by request on the same replicas are
split by replica all the same: that adds what replicas differ by, so the widening is rather too large than too small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline import evidence
from pipeline.evidence_families import ARMS, NO_GAIN, SUMS, TIMES, WHOLE
from pipeline.evidence_lengths import reach
from pipeline.evidence_streams import ROTATION_S, Streams
from pipeline.inference import block_length, calibration
from pipeline.measure import BLOCK_S, REQUESTS

SPLITS, SEED = 50, 1
LEAST_DAYS, LEAST_REPLICAS = 2.0, 4
FAMILY = replace(TIMES, made_of={**TIMES.made_of, **WHOLE.made_of}, nulls=(NO_GAIN,))  # scales are of a metric, whatever its family
METRICS = (REQUESTS, *FAMILY.raw)
BLOCKS_A_DAY = 86_400 // BLOCK_S
_TURN = round(ROTATION_S / BLOCK_S)
_NEARLY = 0.95  # of two days: some blocks are empty

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sample:
    """One arm of a lever in a segment: `sums` (blocks, replicas, METRICS, SUMS) from the block on that begins at `since`."""

    lever: str
    segment: str
    arm: str
    since: datetime
    sums: Reals

    @classmethod
    def of_cells(cls, lever: str, segment: str, arm: str, since: datetime, blocks: int, cells: pl.DataFrame) -> Sample:
        """From rows of metric, replica, block_started_at and SUMS."""
        names = sorted(cells["replica"].unique().to_list())
        sums = np.zeros((blocks, len(names), len(METRICS), len(SUMS)))
        block = (cells["block_started_at"] - since).dt.total_seconds().to_numpy() // BLOCK_S
        replica, metric = (
            cells[column].replace_strict({word: place for place, word in enumerate(words)}, return_dtype=pl.Int64).to_numpy()
            for column, words in (("replica", names), ("metric", METRICS))
        )
        np.add.at(sums, (block, replica, metric), cells.select(SUMS).to_numpy())
        return cls(lever, segment, arm, since, sums)

    def days(self) -> float:
        """How many days of blocks have requests."""
        return float((self.sums[:, :, 0, 0] > 0).any(axis=1).sum() / BLOCKS_A_DAY)

    def missing(self) -> str | None:
        """What there is too little of to split; None where there is enough."""
        replicas, lacks = self.sums.shape[1], []
        if replicas < LEAST_REPLICAS:
            lacks.append(f"{replicas} replicas in {self.arm}, {LEAST_REPLICAS} are needed")
        if self.days() < LEAST_DAYS * _NEARLY:
            lacks.append(f"{self.days():.1f} days with requests in {self.arm}, {LEAST_DAYS:g} are needed")
        return "; ".join(lacks) or None


def halves(sums: Reals, splits: int, seed: int = SEED) -> Reals:
    """Two halves of the replicas that serve, drawn anew each half hour: (splits, blocks, METRICS, arms, SUMS)."""
    blocks, replicas = sums.shape[:2]
    turns = -(-blocks // _TURN)
    padded = np.zeros((turns * _TURN, replicas))
    padded[:blocks] = sums[:, :, 0, 0]
    serves = padded.reshape(turns, _TURN, replicas).sum(axis=1) > 0
    drawn = np.where(serves, np.random.default_rng(seed).random((splits, turns, replicas)), 2.0)
    place = drawn.argsort(axis=2).argsort(axis=2)
    is_first = np.repeat(place < (serves.sum(axis=1) / 2)[:, None], _TURN, axis=1)[:, :blocks].astype(np.float64)
    flat = sums.reshape(blocks, replicas, -1)
    first = np.einsum("sbr,brk->sbk", is_first, flat, optimize=True)
    both = np.stack([first, flat.sum(axis=1) - first], axis=2)
    return np.moveaxis(both.reshape(splits, blocks, len(ARMS), len(METRICS), len(SUMS)), 2, 3)


def contrasts(split: Reals, length: int) -> Reals:
    """The contrasts (contrasts, splits, metrics) of halves in standard deviations, `length` base blocks taken together; NaN where none."""
    splits, blocks = split.shape[:2]
    merged = split[:, : blocks // length * length].reshape(splits, blocks // length, length, *split.shape[2:]).sum(axis=2)
    streams = Streams.start(FAMILY, [("", str(number)) for number in range(splits)])
    known = replace(streams.scale.known, reach=np.full(splits * len(FAMILY.metrics), reach(length)))
    streams = replace(streams, multiple=np.full(splits, length), scale=replace(streams.scale, known=known))
    found = np.full((merged.shape[1], splits * len(FAMILY.metrics)), np.nan)
    for number in range(merged.shape[1]):
        block = merged[:, number]
        # All but one of the blocks that are taken together count as gathered already: the last one brings what all of them have.
        held = replace(streams, open=replace(streams.open, blocks=streams.open.blocks + length - 1))
        both = (block[:, 0, :, 0] > 0).all(axis=1)
        moved, found[number] = evidence.stepped(held, block[:, 1:].reshape(splits, -1), block[:, 0, 1, 0], both, 1.0)
        streams = moved if both.all() else replace(moved, open=replace(moved.open, blocks=np.where(both, moved.open.blocks, 0)))
    return found.reshape(len(found), splits, len(FAMILY.metrics))


def calibrated(samples: Sequence[Sample], splits: int = SPLITS, seed: int = SEED) -> Iterator[dict[str, Any]]:
    """What the splits of a lever's samples, of the same blocks, say: one row per metric and block length, of those that have contrasts.

    `phi` widens the scale enough, None where none of `phis` does; `rates` are false alarms a stream's side and cycle at each of those;
    `spread` and `neighbors` of contrasts at a phi of 1.
    """
    split = np.concatenate([halves(sample.sums, splits, seed + number) for number, sample in enumerate(samples)])
    for length in block_length.MULTIPLES:
        z = contrasts(split, length)
        for place, metric in enumerate(FAMILY.metrics):
            if np.isfinite(z[:, :, place]).any():
                yield {"metric": metric, "blocks_together": length, **_row(z[:, :, place], BLOCKS_A_DAY // length)}


def _row(z: Reals, blocks_a_cycle: int) -> dict[str, Any]:
    found, checked = calibration.smallest_phi(z, blocks_a_cycle, evidence.ALPHA), calibration.check(z)
    return {
        "phi": found.phi,
        "phis": list(calibration.PHIS),
        "rates": list(found.rates),
        "spread": float(np.median(checked.spread)),
        "neighbors": float(np.median(checked.neighbors)),
        "contrasts": int(np.isfinite(z).sum()),
    }
