"""A day of a lever's cells in, the smallest control share that would answer out, by group: in requests and in hours.

Where both arms are there the noise is that of their contrasts; where one is, of its own series, whose load control would have shared: then
the answer comes sooner than is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.inference import holdout, scale, strata
from pipeline.inference.contrast import LEAST_REQUESTS, Sums
from pipeline.inference.holdout import Question, Traffic
from pipeline.inference.scale import LEAST_CLUSTER
from pipeline.inference.standardize import LEAST_COVERAGE
from pipeline.inference.strata import Level
from pipeline.lever_cells import Groups
from pipeline.measure import BLOCK_S
from pipeline.metrics import by_name

LAGS = scale.lags(BLOCK_S)
LEAST_LESSONS = 24
CHANGES = np.geomspace(0.002, 1.0, 160)
FACTORS = 2 ** (np.arange(1, 25) / 2)
SHARES = np.arange(1, 11) / 20
SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "lever": pl.String, "segment": pl.String, "metric": pl.String, "change": pl.Float64, "within_hours": pl.Float64, "share": pl.Float64,
    "requests": pl.Float64, "hours": pl.Float64, "hours_p90": pl.Float64, "block_s": pl.Float64, "is_reached": pl.Boolean,
    "requests_per_hour": pl.Float64, "replicas": pl.Float64, "share_now": pl.Float64, "hours_now": pl.Float64, "hours_p90_now": pl.Float64,
    "change_now": pl.Float64, "basis": pl.String, "blocks": pl.Int64, "note": pl.String,
}  # fmt: skip

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Day:
    """What is known of a day: both arms' sums (strata, blocks, 1) of one metric, the hours that it covers, and how many replicas serve
    each group, infinite where arms are split by request on the same ones.
    """

    treated: Sums
    control: Sums
    hours: float
    replicas: Reals


@dataclass(frozen=True, slots=True)
class Noise:
    """Per group (groups,): one request's variance over the squared mean, the variance that blocks have beyond it, blocks behind both."""

    request: Reals
    cluster: Reals
    blocks: Whole


def advice(day: Day, weight: Reals, among: Groups, lever: str, metric: str, question: Question) -> pl.DataFrame:
    """One row per group (SCHEMA): `share` of control, its `requests` and `hours` until the median answer, `hours_p90` until nine of ten.

    Where no share answers in time, `is_reached` is false and `note` says what lacks. `share_now` and what it can see: `change_now` is the
    smallest change that it finds in time, null without control.
    """
    sign = np.array([-1.0 if by_name()[metric].better == "higher" else 1.0])
    paired, alone = _paired(day, weight, among, sign), _alone(day, weight, among)
    has_both = paired.blocks >= LEAST_LESSONS
    noise = Noise(*(np.where(has_both, getattr(paired, name), getattr(alone, name)) for name in Noise.__slots__))
    requests = [strata.summed(side.n.sum(axis=(1, 2)), among.of) for side in (day.treated, day.control)]
    traffic = Traffic((requests[0] + requests[1]) / day.hours, noise.request, noise.cluster, day.replicas, float(BLOCK_S))
    with np.errstate(invalid="ignore"):
        share_now = np.where(requests[1] > 0, requests[1] / (requests[0] + requests[1]), np.nan)
    told = _told(traffic, question, share_now, has_both)
    columns = {name: told[name] for name in told} | {"requests_per_hour": traffic.requests_per_hour, "replicas": day.replicas}
    frame = pl.DataFrame(columns)
    questions = [replace(question, is_new=not known) for known in has_both.tolist()]
    notes = [_note(place, traffic, asked, noise, told) for place, asked in enumerate(questions)]
    asked = {"lever": lever, "metric": metric, "change": question.change, "within_hours": question.within_hours}
    frame = frame.with_columns(
        pl.Series("segment", among.names, pl.String), pl.Series("blocks", noise.blocks), pl.Series("note", notes, pl.String),
        pl.Series("basis", np.where(has_both, "control", "one_arm")), *(pl.lit(value).alias(name) for name, value in asked.items()),
    )  # fmt: skip
    unbounded = pl.when(pl.col(pl.Float64).is_finite()).then(pl.col(pl.Float64))
    return frame.with_columns(unbounded).select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())


def _told(traffic: Traffic, question: Question, share_now: Reals, is_known: npt.NDArray[np.bool_]) -> dict[str, npt.NDArray[Any]]:
    """What is said of each group: a scale that is known of contrasts so far needs no burn-in."""
    both = []
    for is_new in (True, False):
        asked = replace(question, is_new=is_new)
        found = holdout.smallest(traffic, asked)
        now = dict(zip(("hours_now", "hours_p90_now"), holdout.hours(traffic, asked, share_now)[:2], strict=True))
        said = {name: getattr(found, name) for name in holdout.Holdout.__slots__} | now
        both.append(said | {"change_now": _smallest_change(traffic, asked, share_now)})
    merged = {name: np.where(is_known, both[1][name], both[0][name]) for name in both[0]}
    return merged | {"share_now": share_now}


def _smallest_change(traffic: Traffic, question: Question, share: Reals) -> Reals:
    """The smallest change of which nine answers of ten come in time at a share; NaN where none of up to 100 % does."""
    slow = np.stack([holdout.hours(traffic, replace(question, change=float(change)), share)[1] for change in CHANGES])
    in_time = slow <= question.within_hours
    return np.where(in_time.any(axis=0), CHANGES[in_time.argmax(axis=0)], np.nan)


def _paired(day: Day, weight: Reals, among: Groups, sign: Reals) -> Noise:
    """The noise of the contrasts of both arms, standardized within a group."""
    found = strata.series(day.treated, day.control, weight, among.levels, lambda a, b: (a, b), sign, LEAST_REQUESTS)
    return _noise(*(one[..., 0] for one in (found.difference, found.ih, found.b)))


def _alone(day: Day, weight: Reals, among: Groups) -> Noise:
    """The noise of all requests' own series, at the finest level that says enough."""
    both = Sums(*((getattr(day.treated, name) + getattr(day.control, name))[..., 0] for name in Sums.__slots__))
    found = _of_level(both, weight, among.levels[0])
    for level in among.levels[1:]:
        more, enough = _of_level(both, weight, level), found.blocks >= LEAST_LESSONS
        found = Noise(*(np.where(enough, getattr(found, name), getattr(more, name)) for name in Noise.__slots__))
    return found


def _of_level(sums: Sums, weight: Reals, level: Level) -> Noise:
    """The same at one level: each node relative to its mean of the day."""
    both, weight = strata.of_nodes(sums, level.nodes), strata.summed(weight, level.nodes)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (both.num.sum(axis=1) / both.den.sum(axis=1))[:, None]
        each = ratio * (both.den.sum(axis=1) / both.n.sum(axis=1))[:, None]
        rest = both.num - ratio * both.den
        value = rest / both.n / each
        variance = ((both.num_sq - 2 * ratio * both.num_den + ratio**2 * both.den_sq) / both.n - (rest / both.n) ** 2) / each**2
        told = (both.n >= LEAST_REQUESTS) & np.isfinite(value)
        part = weight[:, None] * told
        coverage = strata.summed(part, level.groups)
        part = part / np.where(coverage >= LEAST_COVERAGE, coverage, np.nan)[level.groups]
        noise = np.where(told, part**2 / both.n, 0.0)
        ih = strata.summed(noise, level.groups)
        spread = strata.summed(noise * np.where(told, np.maximum(variance, 0.0), 0.0), level.groups) / ih
        difference = np.where(ih > 0, strata.summed(np.where(told, part * value, 0.0), level.groups), np.nan)
    return _noise(difference, ih, spread)


def _noise(difference: Reals, ih: Reals, b: Reals) -> Noise:
    """What a day's series (groups, blocks) say of requests' and blocks' variance; NaN where too few blocks say anything."""
    state = scale.State.start(len(difference), LAGS)
    for block in range(difference.shape[1]):
        state = scale.update(state, difference[:, block], ih[:, block], b[:, block])
    enough = state.weight >= LEAST_LESSONS
    with np.errstate(divide="ignore", invalid="ignore"):
        request = np.where(enough, state.noise / state.weight, np.nan)
        from_requests = request * state.thinness / state.weight
        cluster = np.maximum(scale.long_run_variance(state) - from_requests, LEAST_CLUSTER * from_requests)
    return Noise(request, np.where(enough, cluster, np.nan), state.weight.astype(np.int64))


def _note(place: int, traffic: Traffic, question: Question, noise: Noise, told: Mapping[str, npt.NDArray[Any]]) -> str | None:
    """Why no share answers in time, and what lacks."""
    if told["is_reached"][place]:
        return None
    if not np.isfinite(noise.cluster[place]):
        return f"the noise is not known yet: it takes {LEAST_LESSONS + LAGS} blocks with {LEAST_REQUESTS} requests"
    if traffic.replicas[place] * 0.5 < 2:
        return f"control takes two replicas and no more than half of them: of {traffic.replicas[place]:.0f} there are too few"
    here = slice(place, place + 1)
    parts = (traffic.requests_per_hour, traffic.cv_squared, traffic.cluster_variance, traffic.replicas)
    requests, noise_of_one, cluster, replicas = (part[here] for part in parts)
    one = Traffic(requests, noise_of_one, cluster, replicas, traffic.block_s)
    factor = _lacking(one, question)
    unfound = f"no share finds {100 * question.change:.1f} % within {question.within_hours:g} h"
    if factor is None:
        return f"{unfound} with any traffic: blocks differ too much; ask for a larger change or more time"
    return f"{unfound}: it takes {factor:.1f} times the traffic"


def _lacking(one: Traffic, question: Question) -> float | None:
    """How many times the traffic some share would answer in time with; None where even 4,000 times would not do."""
    shares = [share for share in SHARES if one.replicas[0] * share >= 2]
    for factor in FACTORS.tolist():
        more = replace(one, requests_per_hour=one.requests_per_hour * factor)
        if any(holdout.hours(more, question, np.array([share]))[1][0] <= question.within_hours for share in shares):
            return float(factor)
    return None
