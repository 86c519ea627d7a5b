"""Policies and a store's history of effects in, what they would have said of it out. Nothing is written, and no live stream is touched.

Effects are kept as they were when their block closed, so that history in the order of its blocks is what judging would have seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from alerts import streams
from alerts.around import Around
from alerts.backtest_told import Backtest, Switch, Tally
from alerts.chain import Policy
from alerts.dues import due_at
from alerts.playing import Play, Played
from alerts.quality import Reading
from alerts.standing import Seen, Standing
from alerts.streams import NEVER, Key
from queries import files
from queries.store import Store

SLICE_EFFECTS = 300_000  # that are in memory together
END = datetime(9000, 1, 1, tzinfo=UTC)


def backtest(store: Store, policies: Sequence[Policy], since: datetime | None = None, until: datetime | None = None) -> Backtest:
    """What policies say of the blocks that end after `since`, and by `until`: streams begin anew with the first of them.

    Policies that are given together are judged together, as those of a running server are.
    """
    tally, play = Tally(policies), Play(policies)
    start = since or NEVER
    for end in _ends(store, sorted(play.by_lever), since, until):
        for played in _slice(store, policies, play, start, end):
            tally.add(played)
        start = end
    told = tally.told()
    return msgspec.structs.replace(told, switches=_switches(store, policies, told)) if told.streams else told


def _slice(store: Store, policies: Sequence[Policy], play: Play, start: datetime, end: datetime) -> Iterator[Played]:
    """Every judgment of the blocks that end after one moment and by another."""
    frame = streams.effects(store, dict.fromkeys(play.by_lever, start), policies, end)
    around = _Past(store, policies, start, end)
    closed = store.frame(files.question("backtest_closed"), {"since": start, "until": end})["until"].to_list()
    for until, rows in streams.at_ends(frame, sorted({*frame["block_ended_at"].unique().to_list(), *closed})):
        around.look_at((key, play.outcome.known[key].standing) for key in play.outcome.off)
        yield from play.at(until, due_at(until, rows, play.by_lever, play.outcome, around))


class _Past(Around):
    """The same as of a time that is over. Which levers have to be judged again is known as of now alone: it is left out."""

    def seen(self, key: Key, before: Standing, until: datetime, quality: Reading) -> Seen:
        """What was known of a stream at a block's end."""
        return super().seen(key, before, until, quality)._replace(again=None)


def _ends(store: Store, levers: Sequence[str], since: datetime | None, until: datetime | None) -> Iterator[datetime]:
    """Ends of slices of the effects of these levers."""
    hours = store.rows(files.question("backtest_hours"), {"levers": levers, "since": since, "until": until})
    yield from (end if until is None else min(end, until) for end in _slices(hours))


def _slices(hours: Iterable[dict[str, Any]]) -> Iterator[datetime]:
    """Ends of slices of history, each of as many effects as may be in memory, or of an hour."""
    held, end = 0, None
    for hour in hours:
        if end is not None and held + hour["effects"] > SLICE_EFFECTS:
            yield end
            held = 0
        held, end = held + hour["effects"], hour["ends_at"]
    if end is not None:
        yield end


def _switches(store: Store, policies: Sequence[Policy], told: Backtest) -> tuple[Switch, ...]:
    since = min(stream.first_block_at for stream in told.streams) - timedelta(days=1)
    asked = {"levers": sorted({policy.lever for policy in policies}), "since": since, "until": END}
    return tuple(Switch(**row) for row in store.rows(files.question("backtest_switches"), asked))
