"""Cells of one block after another in, evidence per lever, segment and metric out: is the gain below, or above, what it should be?

Each pair of lever and segment gathers blocks until control has enough requests, and then every metric's arms are contrasted once. What is
kept between blocks is plain numbers, so that a restart goes on exactly where it stopped, and it makes no difference in which order the
requests of a block came, or how often anybody looks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.inference import block_length, contrast, detector, interval, scale, turn, waiting
from pipeline.inference.multiplicity import bonferroni_threshold
from pipeline.inference.waiting import Waiting
from pipeline.measure import BLOCK_S, REQUESTS
from pipeline.metrics import by_name

MADE_OF = {"net_itl_s": "tpot_s", "tpot_s": "tpot_s", "ttft_s": "ttft_s", "error_rate": "error_rate"}
METRICS, RAW = tuple(MADE_OF), ("tpot_s", "ttft_s", "error_rate")
ARMS = ("treated", "control")
SUMS = ("n", "num", "den", "num_sq", "den_sq", "num_den")
NULLS = (0.0, 0.02, 0.05, 0.1)
"""Gains against which evidence is kept, of a gain below and of one above."""
BLOCKS_A_CYCLE = 86_400 // BLOCK_S
ALPHA = 0.05
ROTATION_S = 1800.0
LAGS = scale.lags(BLOCK_S, ROTATION_S)
BEYOND = 2.0
"""How far past the threshold the logarithm of evidence grows: what spoke for a lever for weeks must not outweigh an hour against it."""
LAYOUT = 3
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
SCALE_WIDTH = 4 * LAGS + 11
STREAM_WIDTH = 6 + SCALE_WIDTH + len(NULLS) * 2 * len(detector.LAM) + 3 + 4
_HALF_LIFE_BLOCKS = scale.HALF_LIFE_S / BLOCK_S

Reals = npt.NDArray[np.float64]
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Streams:
    """What is kept of each pair of lever and segment, in the order of `pairs`; of each of its metrics, pair by pair.

    `until` is the end of a pair's newest block. `log_m` has shape (streams, nulls, 2, 6): a gain below the null, and above it.
    """

    pairs: tuple[Pair, ...]
    until: tuple[datetime, ...]
    open: block_length.Open
    reference: contrast.Reference
    scale: Waiting
    log_m: Reals
    running: interval.Running
    turned: turn.State

    @classmethod
    def start(cls, pairs: Iterable[Pair] = ()) -> Streams:
        """Pairs that have seen no block."""
        named = tuple(pairs)
        count = len(named) * len(METRICS)
        log_m = np.full((count, len(NULLS), 2, len(detector.LAM)), -np.inf)
        return cls(
            named,
            tuple(NEVER for _ in named),
            block_length.Open.start(len(named), len(RAW) * len(ARMS) * len(SUMS)),
            contrast.Reference.start(count),
            Waiting.start(count, LAGS),
            log_m,
            interval.Running.start(count),
            turn.State.start(count),
        )

    def numbers(self) -> Reals:
        """All that is kept as one row of numbers a pair, in an order that `LAYOUT` names."""
        of_pairs = [self.open.sums, self.open.control_n[:, None], self.open.blocks[:, None].astype(np.float64)]
        parts = [*self._reference(), self.scale.numbers(), self.log_m, *self._running(), *self._turned()]
        columns = [part.reshape(len(part), int(np.prod(part.shape[1:]))) for part in parts]
        of_streams = np.concatenate(columns, axis=1).reshape(len(self.pairs), len(METRICS) * STREAM_WIDTH)
        return np.concatenate([*of_pairs, of_streams], axis=1)

    @classmethod
    def of_numbers(cls, pairs: Sequence[Pair], until: Sequence[datetime], numbers: Reals) -> Streams:
        """What `numbers` gave, back."""
        width, count = len(RAW) * len(ARMS) * len(SUMS), len(pairs) * len(METRICS)
        held = block_length.Open(numbers[:, :width], numbers[:, width], numbers[:, width + 1].astype(np.int64))
        rest = numbers[:, width + 2 :].reshape(count, STREAM_WIDTH)
        edges = np.cumsum([6, SCALE_WIDTH, len(NULLS) * 2 * len(detector.LAM), 3])
        reference, scaled, log_m, running, turned = np.split(rest, edges, axis=1)
        return cls(
            tuple(pairs),
            tuple(until),
            held,
            contrast.Reference(*reference.T),
            Waiting.of_numbers(scaled),
            log_m.reshape(count, len(NULLS), 2, len(detector.LAM)),
            interval.Running(*running.T),
            turn.State(*turned.T),
        )

    def _reference(self) -> list[Reals]:
        kept = self.reference
        return [kept.treated_n, kept.treated_num, kept.treated_den, kept.control_n, kept.control_num, kept.control_den]

    def _running(self) -> list[Reals]:
        return [self.running.n, self.running.s, self.running.ss]

    def _turned(self) -> list[Reals]:
        return [self.turned.total, self.turned.n, self.turned.difference, self.turned.share]


def with_pairs(streams: Streams, pairs: Iterable[Pair]) -> Streams:
    """The streams, and those of pairs that are new."""
    known = set(streams.pairs)
    new = Streams.start(sorted(set(pairs) - known))
    if not new.pairs:
        return streams
    numbers = np.concatenate([streams.numbers(), new.numbers()])
    return Streams.of_numbers(streams.pairs + new.pairs, streams.until + new.until, numbers)


def advanced(streams: Streams, cells: pl.DataFrame, ended_at: datetime) -> tuple[Streams, pl.DataFrame]:
    """(the streams after one more block, the evidence at its end): one row per lever, segment and metric of a pair that has both arms.

    `cells` are those of the block, replicas summed: lever, segment, metric, arm and SUMS. A pair that has seen a later block is left as it
    is. Columns: `evidence` (of a gain below 0: M over the blocks of a cycle), `evidence_below` and `evidence_above` (logarithms of M, one
    per null), `tests` (segments of the lever that are told apart), `blocks_seen`, and since when the lever may be worse than control:
    `turned_blocks`, with the gain since then, `turned_gain`. Evidence is null while the scale is not known yet.
    """
    armed = cells.filter(pl.col("arm").is_in(ARMS))
    both = armed.filter(pl.col("metric") == REQUESTS).group_by("lever", "segment").agg(pl.col("arm").n_unique().alias("arms"))
    paired = both.filter(pl.col("arms") == len(ARMS)).select("lever", "segment").sort("lever", "segment")
    streams = with_pairs(streams, paired.iter_rows())
    fresh = np.array([until < ended_at for until in streams.until], dtype=np.bool_)
    sums, control_n = _arrays(streams.pairs, armed)
    here = np.zeros(len(streams.pairs), dtype=np.bool_)
    place = {pair: number for number, pair in enumerate(streams.pairs)}
    here[[place[pair] for pair in paired.iter_rows()]] = True
    taking = fresh & here
    opened, closed = block_length.add(streams.open, sums, control_n)
    held = block_length.Open(
        np.where(taking[:, None], opened.sums, streams.open.sums),
        np.where(taking, opened.control_n, streams.open.control_n),
        np.where(taking, opened.blocks, streams.open.blocks),
    )
    said = np.where((taking & closed.is_closed)[:, None], closed.sums, np.nan)
    until = tuple(ended_at if took else before for took, before in zip(taking, streams.until, strict=True))
    after = _contrasted(replace(streams, open=held, until=until), said)
    return after, _told(after, here)


def _arrays(pairs: Sequence[Pair], cells: pl.DataFrame) -> tuple[Reals, Reals]:
    """(a pair's sums of RAW by arm, flat; its control requests): zeros where the block has none."""
    sums = np.zeros((len(pairs), len(RAW), len(ARMS), len(SUMS)))
    control_n = np.zeros(len(pairs))
    known = pl.DataFrame(pairs, schema=["lever", "segment"], orient="row").with_row_index("pair") if pairs else None
    if known is None:
        return np.zeros((0, len(RAW) * len(ARMS) * len(SUMS))), control_n
    placed = cells.join(known, on=["lever", "segment"])
    counted = placed.filter((pl.col("metric") == REQUESTS) & (pl.col("arm") == "control"))
    np.add.at(control_n, counted["pair"].to_numpy(), counted["n"].to_numpy())
    measured = placed.filter(pl.col("metric").is_in(RAW))
    metric = measured["metric"].replace_strict({name: place for place, name in enumerate(RAW)}, return_dtype=pl.Int64).to_numpy()
    arm = measured["arm"].replace_strict({name: place for place, name in enumerate(ARMS)}, return_dtype=pl.Int64).to_numpy()
    np.add.at(sums, (measured["pair"].to_numpy(), metric, arm), measured.select(SUMS).cast(pl.Float64).to_numpy())
    return sums.reshape(len(pairs), sums[0].size), control_n


def _contrasted(streams: Streams, said: Reals) -> Streams:
    """Every metric's arms of the blocks that were closed now, against every null."""
    treated, control = _arm_sums(said)
    sign = _signs(len(streams.pairs))
    plain = contrast.block(treated, control, streams.reference, 1.0, sign)
    log_m, least, most = streams.log_m.copy(), detector.threshold(BLOCKS_A_CYCLE, ALPHA), _most(streams.pairs)
    spread = scale.sd(streams.scale.known, plain.ih)
    for place, null in enumerate(NULLS):
        against = contrast.block(treated, control, streams.reference, contrast.theta0(null, sign), sign) if null else plain
        z = against.difference / scale.sd(streams.scale.known, against.ih)
        for side, bet in enumerate((z, -z)):
            log_m[:, place, side] = np.minimum(detector.step(log_m[:, place, side], bet), most[:, None])
    doubtful = detector.freezes(log_m[:, 0, 0], least)
    return replace(
        streams,
        reference=contrast.learn(streams.reference, treated, control),
        scale=waiting.update(streams.scale, plain.difference, plain.ih, plain.b, doubtful, _HALF_LIFE_BLOCKS),
        log_m=log_m,
        running=streams.running.add(plain.difference),
        turned=turn.step(streams.turned, plain.difference / spread, plain.difference, plain.share),
    )


def _arm_sums(said: Reals) -> tuple[contrast.Sums, contrast.Sums]:
    """Both arms' sums of METRICS, pair by pair: net ITL charges treated with the TTFT that it added, spread over its requests."""
    raw = np.nan_to_num(said.reshape(len(said), len(RAW), len(ARMS), len(SUMS)))
    places = [RAW.index(MADE_OF[metric]) for metric in METRICS]
    arms = [contrast.Sums(*np.moveaxis(raw[:, places, arm], -1, 0).reshape(len(SUMS), len(raw) * len(METRICS))) for arm in range(len(ARMS))]
    ttft = raw[:, RAW.index("ttft_s")]
    mean_s = np.divide(ttft[..., 1], ttft[..., 0], out=np.zeros(ttft.shape[:2]), where=ttft[..., 0] > 0)
    known = (ttft[..., 0] > 0).all(axis=1)
    added_s = np.where(known, np.maximum(0.0, mean_s[:, 0] - mean_s[:, 1]), 0.0)
    each = np.zeros((len(raw), len(METRICS)))
    each[:, METRICS.index("net_itl_s")] = added_s
    return arms[0].charged(each.reshape(-1)), arms[1]


def _signs(pairs: int) -> Reals:
    return np.tile([-1.0 if by_name()[metric].better == "higher" else 1.0 for metric in METRICS], pairs)


def _most(pairs: Sequence[Pair]) -> Reals:
    """The logarithm at which each stream's evidence stops growing: a little past where it may latch an action beside its lever's others."""
    counts = Counter(lever for lever, _ in pairs)
    told = [np.log(bonferroni_threshold(counts[lever], BLOCKS_A_CYCLE, ALPHA)) + BEYOND for lever, _ in pairs]
    return np.repeat(np.array(told), len(METRICS))


def _told(streams: Streams, here: npt.NDArray[np.bool_]) -> pl.DataFrame:
    """The evidence of the pairs that are here."""
    if not here.any():
        return pl.DataFrame(schema=SCHEMA)
    chosen = np.repeat(here, len(METRICS))
    logs = detector.log_e(streams.log_m[chosen].reshape(-1, len(detector.LAM))).reshape(-1, len(NULLS), 2)
    known = pl.Series(np.isfinite(logs).all(axis=(1, 2)))
    difference, share = (one[chosen] for one in turn.means(streams.turned))
    pairs = [pair for pair, is_here in zip(streams.pairs, here, strict=True) if is_here]
    named = pl.DataFrame(pairs, schema=["lever", "segment"], orient="row").with_columns(pl.len().over("lever").alias("tests"))
    told = named.select(pl.all().repeat_by(len(METRICS)).explode()).with_columns(
        pl.Series("metric", METRICS * len(pairs)),
        pl.Series("evidence", np.exp(logs[:, 0, 0]) / BLOCKS_A_CYCLE),
        pl.Series("evidence_below", np.ascontiguousarray(logs[:, :, 0])).cast(pl.List(pl.Float64)),
        pl.Series("evidence_above", np.ascontiguousarray(logs[:, :, 1])).cast(pl.List(pl.Float64)),
        pl.Series("blocks_seen", streams.running.n[chosen].astype(np.int64)),
        pl.Series("turned_blocks", streams.turned.n[chosen].astype(np.int64)),
        pl.Series("turned_gain", contrast.gain(difference, share, _signs(len(pairs)))),
    )
    spoken = [pl.when(known).then(name).alias(name) for name in ("evidence", "evidence_below", "evidence_above")]
    spoken.append(pl.when(pl.col("turned_gain").is_finite()).then("turned_gain").alias("turned_gain"))
    return told.with_columns(spoken).select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())


SCHEMA = pl.Schema(
    {
        "lever": pl.String(),
        "segment": pl.String(),
        "metric": pl.String(),
        "evidence": pl.Float64(),
        "tests": pl.Int64(),
        "evidence_below": pl.List(pl.Float64()),
        "evidence_above": pl.List(pl.Float64()),
        "blocks_seen": pl.Int64(),
        "turned_blocks": pl.Int64(),
        "turned_gain": pl.Float64(),
    }
)
