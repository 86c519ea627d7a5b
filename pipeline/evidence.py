"""Cells of one block after another in, evidence per lever, segment and metric out: is the gain below, or above, what it should be?

Each pair of lever and segment gathers blocks until control has enough requests, and then every metric's arms are contrasted once. What is
kept between blocks is plain numbers, so that a restart goes on exactly where it stopped, and it makes no difference in which order the
requests of a block came, or how often anybody looks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.evidence_families import ARMS, NO_GAIN, NULLS, SUMS, Family
from pipeline.evidence_streams import Pair, Streams, with_pairs
from pipeline.evidence_told import BLOCKS_A_CYCLE, signs, told
from pipeline.inference import block_length, contrast, detector, scale, turn, waiting
from pipeline.inference.multiplicity import bonferroni_threshold
from pipeline.measure import BLOCK_S, REQUESTS

ALPHA = 0.05
BEYOND = 2.0
"""How far past the threshold the logarithm of evidence grows: what spoke for a lever for weeks must not outweigh an hour against it."""
_HALF_LIFE_BLOCKS = scale.HALF_LIFE_S / BLOCK_S

Reals = npt.NDArray[np.float64]


def advanced(streams: Streams, cells: pl.DataFrame, ended_at: datetime) -> tuple[Streams, pl.DataFrame]:
    """(the streams after one more block, the evidence at its end): one row per lever, segment and metric of a pair that has both arms.

    `cells` are those of the block, replicas summed: lever, segment, arm, SUMS and metric: the family's `raw`, and REQUESTS. A pair that has
    seen a later block is left as it is. Columns: `evidence` (of a gain below 0: M over the blocks of a cycle), `evidence_below` and
    `evidence_above` (logarithms of M, one per null), `tests` (segments of the lever that are told apart), `blocks_seen`, and since when the
    lever may be worse than control: `turned_blocks`, with the gain since then, `turned_gain`. Evidence is null while no scale is known.
    """
    armed = cells.filter(pl.col("arm").is_in(ARMS))
    both = armed.filter(pl.col("metric") == REQUESTS).group_by("lever", "segment").agg(pl.col("arm").n_unique().alias("arms"))
    paired = both.filter(pl.col("arms") == len(ARMS)).select("lever", "segment").sort("lever", "segment")
    streams = with_pairs(streams, paired.iter_rows())
    fresh = np.array([until < ended_at for until in streams.until], dtype=np.bool_)
    sums, control_n = _arrays(streams.family, streams.pairs, armed)
    here = np.zeros(len(streams.pairs), dtype=np.bool_)
    place = {pair: number for number, pair in enumerate(streams.pairs)}
    here[[place[pair] for pair in paired.iter_rows()]] = True
    taking = fresh & here
    opened, closed = block_length.add(streams.open, sums, control_n, needed=streams.family.needed)
    held = block_length.Open(
        np.where(taking[:, None], opened.sums, streams.open.sums),
        np.where(taking, opened.control_n, streams.open.control_n),
        np.where(taking, opened.blocks, streams.open.blocks),
    )
    said = np.where((taking & closed.is_closed)[:, None], closed.sums, np.nan)
    until = tuple(ended_at if took else before for took, before in zip(taking, streams.until, strict=True))
    after = _contrasted(replace(streams, open=held, until=until), said)
    return after, told(after, here)


def _arrays(family: Family, pairs: Sequence[Pair], cells: pl.DataFrame) -> tuple[Reals, Reals]:
    """(a pair's sums of the raw metrics by arm, flat; its control requests): zeros where the block has none."""
    raw = family.raw
    sums = np.zeros((len(pairs), len(raw), len(ARMS), len(SUMS)))
    control_n = np.zeros(len(pairs))
    known = pl.DataFrame(pairs, schema=["lever", "segment"], orient="row").with_row_index("pair") if pairs else None
    if known is None:
        return np.zeros((0, len(raw) * len(ARMS) * len(SUMS))), control_n
    placed = cells.join(known, on=["lever", "segment"])
    counted = placed.filter((pl.col("metric") == REQUESTS) & (pl.col("arm") == "control"))
    np.add.at(control_n, counted["pair"].to_numpy(), counted["n"].to_numpy())
    measured = placed.filter(pl.col("metric").is_in(raw))
    metric = measured["metric"].replace_strict({name: place for place, name in enumerate(raw)}, return_dtype=pl.Int64).to_numpy()
    arm = measured["arm"].replace_strict({name: place for place, name in enumerate(ARMS)}, return_dtype=pl.Int64).to_numpy()
    np.add.at(sums, (measured["pair"].to_numpy(), metric, arm), measured.select(SUMS).cast(pl.Float64).to_numpy())
    return sums.reshape(len(pairs), sums[0].size), control_n


def _contrasted(streams: Streams, said: Reals) -> Streams:
    """Every metric's arms of the blocks that were closed now, against every null."""
    family = streams.family
    treated, control = _arm_sums(family, said)
    sign = signs(family, len(streams.pairs))
    plain = contrast.block(treated, control, streams.reference, 1.0, sign)
    log_m, least, most = streams.log_m.copy(), detector.threshold(BLOCKS_A_CYCLE, ALPHA), _most(streams)
    spread = scale.sd(streams.scale.known, plain.ih)
    for place, null in enumerate(NULLS[number] for number in family.nulls):
        against = contrast.block(treated, control, streams.reference, contrast.theta0(null, sign), sign) if null else plain
        z = against.difference / scale.sd(streams.scale.known, against.ih)
        for side, bet in enumerate((z, -z)):
            log_m[:, place, side] = np.minimum(detector.step(log_m[:, place, side], bet), most[:, None])
    doubtful = detector.freezes(log_m[:, family.nulls.index(NO_GAIN), 0], least)
    return replace(
        streams,
        reference=contrast.learn(streams.reference, treated, control),
        scale=waiting.update(streams.scale, plain.difference, plain.ih, plain.b, doubtful, _HALF_LIFE_BLOCKS),
        log_m=log_m,
        running=streams.running.add(plain.difference),
        turned=turn.step(streams.turned, plain.difference / spread, plain.difference, plain.share),
    )


def _arm_sums(family: Family, said: Reals) -> tuple[contrast.Sums, contrast.Sums]:
    """Both arms' sums of the family's metrics, pair by pair: what is charged takes the TTFT that treated added."""
    raw = np.nan_to_num(said.reshape(len(said), len(family.raw), len(ARMS), len(SUMS)))
    places = [family.raw.index(of) for of in family.made_of.values()]
    width = len(raw) * len(places)
    arms = [contrast.Sums(*np.moveaxis(raw[:, places, arm], -1, 0).reshape(len(SUMS), width)) for arm in range(len(ARMS))]
    if not family.charged:
        return arms[0], arms[1]
    ttft = raw[:, family.raw.index("ttft_s")]
    mean_s = np.divide(ttft[..., 1], ttft[..., 0], out=np.zeros(ttft.shape[:2]), where=ttft[..., 0] > 0)
    known = (ttft[..., 0] > 0).all(axis=1)
    added_s = np.where(known, np.maximum(0.0, mean_s[:, 0] - mean_s[:, 1]), 0.0)
    is_charged = np.array([metric in family.charged for metric in family.metrics])
    return arms[0].charged((added_s[:, None] * is_charged).reshape(-1)), arms[1]


def _most(streams: Streams) -> Reals:
    """The logarithm at which each stream's evidence stops growing: a little past where it may latch an action beside its lever's others."""
    counts = Counter(lever for lever, _ in streams.pairs)
    told = [np.log(bonferroni_threshold(counts[lever], BLOCKS_A_CYCLE, ALPHA)) + BEYOND for lever, _ in streams.pairs]
    return np.repeat(np.array(told), len(streams.family.metrics))
