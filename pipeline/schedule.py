"""A plan in, a switchback schedule out: when each replica runs with a lever and when without, the order drawn by chance.

Leverwatch plans and reads schedules; whoever runs the engines turns the lever. A fixed order, or one that follows the load, would be
mistaken for the lever (theory of switchbacks: arXiv 2009.00148).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np

from pipeline.inference.switchback import Periods
from pipeline.schedule_rows import TREATED, Period, ScheduleError

BLOCK_S = 300
MOST_PERIOD_S = 86_400
MIN_PAIRS_TOLD_ORDER = 8  # one order in as many pairs comes by chance once in 128


@dataclass(frozen=True, slots=True)
class Plan:
    """How long a lever stays as it is (seconds, a multiple of 300), and what is not measured at a period's two ends.

    `burn_in_s` covers what the setting before left behind: a drain, for caching the time in which a cache fills. `tail_s` keeps out
    requests that the next setting would finish.
    """

    period_s: int = 900
    burn_in_s: int = 300
    tail_s: int = 0


def planned(
    lever: str, replicas: Sequence[str], since: datetime, pairs: int, plan: Plan, seed: int, without: str = "control"
) -> tuple[Period, ...]:
    """The periods of `pairs` pairs on each replica, orders drawn from `seed`, replicas staggered by blocks of 300 s.

    `without` is the other arm: `disabled_in_place` where the engine keeps the lever and only stops using it, which may cost by itself.

    Raises:
        ScheduleError: the plan leaves no block to measure, or does not lie on blocks.
    """
    for problem in _problems(replicas, since, plan):
        msg = f"schedule of {lever}: {problem}"
        raise ScheduleError(msg)
    drawn = np.random.default_rng(seed).random((len(replicas), pairs)) < 0.5
    length, places = timedelta(seconds=plan.period_s), plan.period_s // BLOCK_S
    found = []
    for at, replica in enumerate(replicas):
        begin = since + timedelta(seconds=BLOCK_S * (at % places))
        for place, arm in enumerate(_arms(drawn[at].tolist(), without)):
            start = begin + length * place
            found.append(Period(lever, replica, place // 2 + 1, arm, start, start + length, plan.burn_in_s, plan.tail_s))
    return tuple(found)


def objections(periods: Sequence[Period]) -> list[str]:
    """Why the lever's effect cannot be told from the clock's by this schedule, in sentences; none where it can."""
    firsts: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)
    for one in sorted(periods, key=lambda one: one.since):
        firsts[one.lever, one.replica].setdefault(one.pair, one.arm)
    found = []
    for (lever, replica), pairs in firsts.items():
        arms = [pairs[number] for number in sorted(pairs)]
        if len(arms) < MIN_PAIRS_TOLD_ORDER:
            continue
        if len(set(arms)) == 1:
            found.append(f"{lever} on {replica!r}: {arms[0]} comes first in all {len(arms)} pairs; the order has to be drawn")
        elif all(first != second for first, second in pairwise(arms)):
            found.append(f"{lever} on {replica!r}: the order alternates through all {len(arms)} pairs; it has to be drawn")
    short = sum(not _holds_a_block(one) for one in periods)
    return [*found, f"{short} of {len(periods)} periods measure no whole block of {BLOCK_S} s"] if short else found


def arrays(periods: Sequence[Period], lever: str, replicas: Mapping[str, int]) -> Periods:
    """A lever's schedule for the kernels, times in seconds since 1970; `replicas` gives each name its number, others are left out."""
    held = [one for one in periods if one.lever == lever and one.replica in replicas]
    measured = [[moment.timestamp() for moment in one.measured] for one in held]
    since_s, until_s = np.array(measured, np.float64).reshape(-1, 2).T
    return Periods(
        np.array([replicas[one.replica] for one in held], np.int64),
        np.array([one.pair for one in held], np.int64),
        np.array([one.arm == TREATED for one in held], np.bool_),
        since_s,
        until_s,
    )


def _problems(replicas: Sequence[str], since: datetime, plan: Plan) -> Iterator[str]:
    if not 0 < plan.period_s <= MOST_PERIOD_S or plan.period_s % BLOCK_S:
        yield f"period_s {plan.period_s}: a multiple of {BLOCK_S} up to {MOST_PERIOD_S} is taken"
        return
    if plan.burn_in_s < 0 or plan.tail_s < 0:
        yield f"burn_in_s {plan.burn_in_s}, tail_s {plan.tail_s}: numbers from 0 on are taken"
    if since.tzinfo is None or since.timestamp() % BLOCK_S:
        yield f"since {since.isoformat()}: a time with an offset, on a whole 5 minutes, is taken"
    if not replicas or len(set(replicas)) != len(replicas) or not all(name.strip() for name in replicas):
        yield f"replicas {', '.join(replicas)!r}: different names that are not empty are taken, one at least"
    first = Period("", "", 1, "", since, since + timedelta(seconds=plan.period_s), plan.burn_in_s, plan.tail_s)
    if not _holds_a_block(first):
        told = f"burn_in_s {plan.burn_in_s} and tail_s {plan.tail_s}"
        yield f"{told} leave no whole block of {BLOCK_S} s of period_s {plan.period_s}"


def _arms(starts_treated: Sequence[bool], without: str) -> Iterator[str]:
    for is_treated in starts_treated:
        yield from (TREATED, without) if is_treated else (without, TREATED)


def _holds_a_block(one: Period) -> bool:
    since, until = (moment.timestamp() for moment in one.measured)
    return -(-since // BLOCK_S) * BLOCK_S + BLOCK_S <= until
