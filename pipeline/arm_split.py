"""Requests of both arms, block by block, in; whether they are split as a configuration intends, out: one row per lever and segment.

A split that is off spoils every contrast of the two arms, so decisions freeze; it accuses no lever (docs/statistics.md).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.inference import sample_ratio
from pipeline.measure import BLOCK_S

ALPHA = 0.01  # of a lever's segments together, and a cycle
BLOCKS_A_CYCLE = 86_400 // BLOCK_S
LEAST_HELD_BLOCKS = 12
FADING = 0.5 ** (BLOCK_S / 3600.0)  # of what is shown: half of it is of the last hour
LAYOUT = 1
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
WIDTH = 8 + len(sample_ratio.ODDS)
_SCHEMA = {
    "lever": pl.String, "segment": pl.String, "sample_ratio_off": pl.Boolean, "control_share": pl.Float64,
    "intended_control_share": pl.Float64,
}  # fmt: skip
NOTHING = pl.DataFrame(schema={**_SCHEMA, "until": pl.Datetime("us", "UTC")})

Reals = npt.NDArray[np.float64]
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Holdout:
    """The share (0 to 1) of a lever's requests that are to be control, of a model or hardware where these are named.

    `requests_together` is how many requests one split decides on, such as a session's.
    """

    lever: str
    control_share: float
    model: str = ""
    hardware: str = ""
    requests_together: float = 1.0

    def covers(self, lever: str, segment: str) -> bool:
        """Whether it is about a judging segment of a lever."""
        if self.lever != lever:
            return False
        keys = json.loads(segment)
        return self.model in ("", keys.get("model")) and self.hardware in ("", keys.get("hardware"))


@dataclass(frozen=True, slots=True)
class Splits:
    """What is kept of each pair of lever and segment, in the order of `pairs`; arrays (pairs,).

    `share` is treated's as intended, `blocks` counts those of the epoch, `held` those for which a split that was found off still counts as
    that. `treated_n` and `control_n` are fading counts, to be shown.
    """

    pairs: tuple[Pair, ...]
    until: tuple[datetime, ...]
    state: sample_ratio.State
    share: Reals
    together: Reals
    blocks: Reals
    held: Reals
    treated_n: Reals
    control_n: Reals

    def numbers(self) -> Reals:
        """All that is kept as one row of numbers a pair, in an order that LAYOUT names."""
        plain = (self.state.treated, self.state.control, self.share, self.together, self.blocks, self.held, self.treated_n, self.control_n)
        return np.column_stack([*plain, self.state.log_m])

    @classmethod
    def of_numbers(cls, pairs: Sequence[Pair], until: Sequence[datetime], numbers: Reals) -> Splits:
        """What `numbers` gave, back."""
        treated, control, *plain = numbers[:, :8].T
        return cls(tuple(pairs), tuple(until), sample_ratio.State(treated, control, numbers[:, 8:]), *plain)


def advanced(kept: Splits, counted: pl.DataFrame, ended_at: datetime, holdouts: Sequence[Holdout]) -> tuple[Splits, pl.DataFrame]:
    """(the splits after one more block, what they say at its end): one row per lever and segment whose share is stated, with `until`.

    `counted` has the block's requests: lever, segment, treated and control.
    """
    known = set(kept.pairs)
    new = [(lever, segment) for lever, segment in counted.select("lever", "segment").iter_rows() if (lever, segment) not in known]
    kept = _with_pairs(kept, _stated(new, holdouts))
    places = pl.DataFrame(kept.pairs, schema={"lever": pl.String, "segment": pl.String}, orient="row")
    here = places.join(counted, on=["lever", "segment"], how="left", maintain_order="left")
    fresh = np.array([until < ended_at for until in kept.until], dtype=np.bool_)
    treated, control = (np.where(fresh, here[arm].cast(pl.Float64).fill_null(np.nan).to_numpy(), np.nan) for arm in ("treated", "control"))
    after = _stepped(kept, treated, control, ended_at)
    told = _told(after).filter(here["treated"].is_not_null() & pl.Series([until <= ended_at for until in kept.until], dtype=pl.Boolean))
    return after, told.with_columns(pl.lit(ended_at, pl.Datetime("us", "UTC")).alias("until"))


def with_split(made: pl.DataFrame, told: pl.DataFrame) -> pl.DataFrame:
    """Effects with what was found of their arms' split; null where nobody said how it should be."""
    return made.join(told, on=["until", "lever", "segment"], how="left", maintain_order="left")


def joined(kept: Splits, holdouts: Sequence[Holdout]) -> Splits:
    """The splits whose share is still stated as it was: a share that changed, or that nobody states any more, is forgotten."""
    stated = _stated(kept.pairs, holdouts)
    asked = [stated.get(pair) for pair in kept.pairs]
    same = np.array(
        [one is not None and (1 - one.control_share, one.requests_together) == was for one, was in zip(asked, _were(kept), strict=True)],
        dtype=np.bool_,
    )
    stay = np.flatnonzero(same).tolist()
    return Splits.of_numbers([kept.pairs[place] for place in stay], [kept.until[place] for place in stay], kept.numbers()[same])


def _were(kept: Splits) -> list[tuple[float, float]]:
    return list(zip(kept.share.tolist(), kept.together.tolist(), strict=True))


def _stated(pairs: Iterable[Pair], holdouts: Sequence[Holdout]) -> dict[Pair, Holdout]:
    """The first holdout that is about each pair."""
    found = {(lever, segment): next((one for one in holdouts if one.covers(lever, segment)), None) for lever, segment in pairs}
    return {pair: one for pair, one in found.items() if one is not None}


def _with_pairs(kept: Splits, stated: dict[Pair, Holdout]) -> Splits:
    if not stated:
        return kept
    new = sorted(stated)
    numbers = np.zeros((len(new), WIDTH))
    numbers[:, 2:4] = [(1 - stated[pair].control_share, stated[pair].requests_together) for pair in new]
    numbers[:, 8:] = -np.inf
    together = np.concatenate([kept.numbers(), numbers])
    return Splits.of_numbers((*kept.pairs, *new), (*kept.until, *(NEVER for _ in new)), together)


def _stepped(kept: Splits, treated: Reals, control: Reals, ended_at: datetime) -> Splits:
    """A split that is found off is held so for as long as finding it took, and watched anew: one that was mended is free again."""
    seen = np.isfinite(treated)
    state, blocks = sample_ratio.step(kept.state, treated, control, kept.share, kept.together), kept.blocks + seen
    alpha = ALPHA / np.array([Counter(lever for lever, _ in kept.pairs)[lever] for lever, _ in kept.pairs])
    off = seen & sample_ratio.is_off(state, kept.share, alpha, BLOCKS_A_CYCLE)
    again = off | (blocks >= BLOCKS_A_CYCLE)
    log_m = np.where(off[:, None], -np.inf, state.log_m)
    return replace(
        kept,
        until=tuple(ended_at if took else before for took, before in zip(seen, kept.until, strict=True)),
        state=sample_ratio.State(np.where(again, 0.0, state.treated), np.where(again, 0.0, state.control), log_m),
        blocks=np.where(again, 0.0, blocks),
        held=np.where(off, np.maximum(blocks, LEAST_HELD_BLOCKS), np.maximum(kept.held - seen, 0.0)),
        treated_n=np.where(seen, FADING * kept.treated_n + treated, kept.treated_n),
        control_n=np.where(seen, FADING * kept.control_n + control, kept.control_n),
    )


def _told(kept: Splits) -> pl.DataFrame:
    levers, named = zip(*kept.pairs, strict=True) if kept.pairs else ((), ())
    total = kept.treated_n + kept.control_n
    columns = (levers, named, kept.held > 0, kept.control_n / np.maximum(total, 1e-9), 1 - kept.share)
    return pl.DataFrame(dict(zip(_SCHEMA, columns, strict=True)), schema=_SCHEMA)
