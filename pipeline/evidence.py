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
from operator import gt, lt

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.evidence_families import ARMS, NO_GAIN, NULLS, SUMS, Family
from pipeline.evidence_streams import Pair, Streams, Truths, restarted, with_pairs
from pipeline.evidence_told import BLOCKS_A_CYCLE, signs, told
from pipeline.inference import block_length, checking, contrast, detector, scale, turn, waiting
from pipeline.inference.multiplicity import bonferroni_threshold
from pipeline.measure import BLOCK_S, REQUESTS
from pipeline.tuning import PLAIN, Tuning, widened

ALPHA = 0.05
BEYOND = 2.0
"""How far past the threshold the logarithm of evidence grows: what spoke for a lever for weeks must not outweigh an hour against it."""
_HALF_LIFE_BLOCKS = scale.HALF_LIFE_S / BLOCK_S

Reals = npt.NDArray[np.float64]


def advanced(streams: Streams, cells: pl.DataFrame, ended_at: datetime, tuning: Tuning = PLAIN) -> tuple[Streams, pl.DataFrame]:
    """(the streams after one more block, the evidence at its end): one row per lever, segment and metric of a pair that has both arms.

    `cells` are those of the block, replicas summed: lever, segment, arm, SUMS and metric: the family's `raw`, and REQUESTS. A pair that
    has seen a later block is left as it is, and says nothing here: what it knows is of later. Columns: `evidence` (of a gain below 0: M
    over the blocks of a cycle), `evidence_below` and `evidence_above` (logarithms of M, one per null), `tests` (segments of the lever that
    are told apart), `blocks_seen`, and since when the lever may be worse than control: `turned_blocks`, with the gain since then,
    `turned_gain`. Evidence is null while no scale is known. `uncalibrated` says that the contrasts of the last day, `contrast_spread` and
    `contrast_neighbors`, are not what the scale says; `blocks_together` is how many blocks make one contrast at least.
    """
    armed = cells.filter(pl.col("arm").is_in(ARMS))
    both = armed.filter(pl.col("metric") == REQUESTS).group_by("lever", "segment").agg(pl.col("arm").n_unique().alias("arms"))
    paired = both.filter(pl.col("arms") == len(ARMS)).select("lever", "segment").sort("lever", "segment")
    streams = with_pairs(streams, paired.iter_rows())
    fresh, is_late = (np.array([compare(until, ended_at) for until in streams.until], dtype=np.bool_) for compare in (lt, gt))
    sums, control_n = _arrays(streams.family, streams.pairs, armed)
    here = np.zeros(len(streams.pairs), dtype=np.bool_)
    place = {pair: number for number, pair in enumerate(streams.pairs)}
    here[[place[pair] for pair in paired.iter_rows()]] = True
    taking = fresh & here
    begins_anew = tuning.is_new(streams.pairs, streams.until, taking, ended_at)
    if begins_anew.any():
        streams = restarted(streams, begins_anew)
    phi = tuning.phi(streams.pairs, streams.family.metrics, streams.multiple)
    after, _ = stepped(streams, sums, control_n, taking, widened(phi))
    until = tuple(ended_at if took else before for took, before in zip(taking, streams.until, strict=True))
    after = replace(after, until=until)
    return after, told(after, here & ~is_late, ~np.isfinite(phi))


def stepped(streams: Streams, sums: Reals, control_n: Reals, taking: Truths, phi: Reals | float) -> tuple[Streams, Reals]:
    """(the streams after one more base block of the pairs that are `taking` it, their contrasts against no gain in standard deviations).

    `sums` (pairs, what an open block has) are a pair's of the raw metrics by arm, flat; `control_n` (pairs,) control's requests. A contrast
    is NaN where no block was closed, or no scale is known. `phi` widens the scale, per stream.
    """
    opened, closed = block_length.add(streams.open, sums, control_n, streams.multiple, streams.family.needed)
    held = block_length.Open(
        np.where(taking[:, None], opened.sums, streams.open.sums),
        np.where(taking, opened.control_n, streams.open.control_n),
        np.where(taking, opened.blocks, streams.open.blocks),
    )
    age = streams.age + (taking & (streams.age >= 0))
    said = np.where((taking & closed.is_closed)[:, None], closed.sums, np.nan)
    return _contrasted(replace(streams, open=held, age=age), said, phi)


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


def _contrasted(streams: Streams, said: Reals, phi: Reals | float) -> tuple[Streams, Reals]:
    """Every metric's arms of the blocks that were closed now, against every null."""
    family, blocks_a_cycle = streams.family, BLOCKS_A_CYCLE / np.repeat(streams.multiple, len(streams.family.metrics))
    treated, control = _arm_sums(family, said, streams.reference)
    sign = signs(family, len(streams.pairs))
    plain = _at_levels(family, contrast.block(treated, control, streams.reference, 1.0, sign))
    log_m, least, most = streams.log_m.copy(), detector.threshold(blocks_a_cycle, ALPHA), _most(streams, blocks_a_cycle)
    spread = scale.sd(streams.scale.known, plain.ih, phi)
    for place, null in enumerate(NULLS[number] for number in family.nulls):
        against = contrast.block(treated, control, streams.reference, contrast.theta0(null, sign), sign) if null else plain
        z = against.difference / scale.sd(streams.scale.known, against.ih, phi)
        for side, bet in enumerate((z, -z)):
            log_m[:, place, side] = np.minimum(detector.step(log_m[:, place, side], bet), most[:, None])
    doubtful = detector.freezes(log_m[:, family.nulls.index(NO_GAIN), 0], least)
    half_life_blocks = _HALF_LIFE_BLOCKS * blocks_a_cycle / BLOCKS_A_CYCLE
    after = replace(
        streams,
        reference=contrast.learn(streams.reference, treated, control),
        scale=waiting.update(streams.scale, plain.difference, plain.ih, plain.b, doubtful, half_life_blocks),
        log_m=log_m,
        running=streams.running.add(plain.difference),
        turned=turn.step(streams.turned, plain.difference / spread, plain.difference, plain.share),
        checks=checking.step(streams.checks, streams.scale.known, plain.difference, spread, doubtful, blocks_a_cycle),
    )
    return after, plain.difference / spread


def _arm_sums(family: Family, said: Reals, reference: contrast.Reference) -> tuple[contrast.Sums, contrast.Sums]:
    """Both arms' sums of the family's metrics, pair by pair: what is charged takes the TTFT that treated added.

    Earlier blocks say whether it adds any. Were it asked of the block itself, what chance holds against treated would be charged and what
    it gives back would not: a lever that does nothing would do harm.
    """
    raw = np.nan_to_num(said.reshape(len(said), len(family.raw), len(ARMS), len(SUMS)))
    places = [family.raw.index(of) for of in family.made_of.values()]
    width = len(raw) * len(places)
    arms = [contrast.Sums(*np.moveaxis(raw[:, places, arm], -1, 0).reshape(len(SUMS), width)) for arm in range(len(ARMS))]
    if not family.charged:
        return arms[0], arms[1]
    ttft = raw[:, family.raw.index("ttft_s")]
    mean_s = np.divide(ttft[..., 1], ttft[..., 0], out=np.zeros(ttft.shape[:2]), where=ttft[..., 0] > 0)
    known = (ttft[..., 0] > 0).all(axis=1) & _adds_ttft(family, reference)
    added_s = np.where(known, mean_s[:, 0] - mean_s[:, 1], 0.0)
    is_charged = np.array([metric in family.charged for metric in family.metrics])
    return arms[0].charged((added_s[:, None] * is_charged).reshape(-1)), arms[1]


def _adds_ttft(family: Family, reference: contrast.Reference) -> Truths:
    """Whether treated's mean TTFT was above control's in earlier blocks, pair by pair."""
    ttft = slice(family.metrics.index("ttft_s"), None, len(family.metrics))
    treated, control = reference.treated_num[ttft] * reference.control_n[ttft], reference.control_num[ttft] * reference.treated_n[ttft]
    return np.asarray(treated > control, dtype=np.bool_)


def _at_levels(family: Family, told: contrast.Contrast) -> contrast.Contrast:
    """The contrasts relative to the levels that the family's metrics have in advance, if they have any."""
    if not family.levels:
        return told
    level = np.tile([family.levels[metric] for metric in family.metrics], len(told.level) // len(family.metrics))
    ratio = told.level / level
    return replace(told, difference=told.difference * ratio, b=told.b * ratio**2, level=level)


def _most(streams: Streams, blocks_a_cycle: Reals) -> Reals:
    """The logarithm at which each stream's evidence stops growing: a little past where it may latch an action beside its lever's others."""
    counts = Counter(lever for lever, _ in streams.pairs)
    told = [np.log(bonferroni_threshold(counts[lever], BLOCKS_A_CYCLE, ALPHA)) + BEYOND for lever, _ in streams.pairs]
    return np.repeat(np.array(told), len(streams.family.metrics)) + np.log(blocks_a_cycle / BLOCKS_A_CYCLE)
