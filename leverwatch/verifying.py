"""A notice and a store to ask in, whether the notice is the flip that is stored, and whether the sums behind it still hold, out.

A notice is a stranger's text: what it says is held against the flip of its id, and what today's code makes of that flip's lever, segment
and metric. Where no such flip is stored its own SQL runs as any ad-hoc SQL does, in the sandbox, and its words stay unchecked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

import polars as pl

from alerts import sums, wording
from alerts.effects import Effect, effect_name
from leverwatch import checked_notice, stored_flip
from leverwatch.checked_notice import Chain, Evidence, Notice, Query
from leverwatch.connection import Connection
from leverwatch.recomputing import Recomputed, recomputed
from pipeline.metrics import judged
from pipeline.segments import canonical
from queries.sandbox import SqlError

Outcome = Literal["holds", "changed", "unknown"]
MOST_ROWS = 1_000_000
NOT_STORED = "this store has no flip"
NO_ID = "it names no flip_id"
CLOSE = 0.02  # of a gain: cells may have been settled a little before the sums were asked for
_DROPPED = """
select sum("rows")::bigint as "rows", string_agg(distinct reason, ', ' order by reason) as reasons
from retention_log
where relation = 'requests' and since < $until::timestamptz and until > $since::timestamptz
"""
_THERE = "select count(*) as requests from requests where started_at >= $since::timestamptz and started_at < $until::timestamptz"


class Verified(NamedTuple):
    """Whether a notice holds, why, and what its sums give today."""

    outcome: Outcome
    reasons: tuple[str, ...]
    metric: str | None = None
    now: Recomputed | None = None


class _Answer(NamedTuple):
    """What the notice's own question gives today, and what today's code would ask."""

    query: Query
    frame: pl.DataFrame
    evidence: Evidence | None
    effect: Effect | None

    @property
    def is_same(self) -> bool:
        return tuple(self.frame.columns) == self.query.columns and sums.result_hash(self.frame) == self.query.result_hash


def verify(notice: Notice, connection: Connection) -> Verified:
    """Holds each field of a notice against the flip that is stored of it, and asks that flip's question again, in the sandbox.

    Raises:
        ConnectError: there is nobody to ask.
    """
    flip = stored_flip.stored(notice, connection)
    if flip is None:
        found = _sums(notice, connection)
        unheld = f"{NOT_STORED} {notice.flip_id!r}" if notice.flip_id else NO_ID
        outcome: Outcome = "unknown" if found.outcome == "holds" else found.outcome
        return found._replace(outcome=outcome, reasons=(*found.reasons, f"{unheld}: what it says beside its sums cannot be checked"))
    altered = stored_flip.otherwise(notice, flip)
    found = _sums(checked_notice.notice(json.dumps(flip["notice"]), "the flip stored here"), connection)
    if not altered:
        return found
    return found._replace(outcome="changed", reasons=(*altered, *found.reasons))


def _sums(notice: Notice, connection: Connection) -> Verified:
    """Whether the sums behind a notice are what they were, and give what it tells."""
    if notice.query is None:
        return Verified("unknown", ("the notice has no query: its segment is no set of columns, or what was compared was no control arm",))
    try:
        given = connection.ask(notice.query.sql, notice.query.params, MOST_ROWS)
    except SqlError as error:
        return Verified("unknown", (f"its SQL has no answer here: {error.message}",))
    if given.truncated:
        return Verified("unknown", (f"its SQL gives more than {MOST_ROWS} rows",))
    try:
        return _judged(notice, connection, _answer(notice, notice.query, given.frame()))
    except (KeyError, TypeError, ValueError, SqlError) as error:
        return Verified("unknown", (f"what its SQL gives cannot be read as sums: {error}",))


def _judged(notice: Notice, connection: Connection, answer: _Answer) -> Verified:
    if answer.frame.is_empty() and not answer.is_same:
        return Verified("unknown", tuple(_gone(connection, answer.query)))
    reasons = [] if answer.is_same else list(_otherwise(notice, connection, answer))
    if answer.effect is None:
        reasons.append(_asked_otherwise(notice, answer.query))
    metric = answer.evidence.metric if answer.evidence else None
    now = recomputed(notice.lever, metric, answer.frame, answer.effect) if metric and answer.effect else None
    if now and answer.evidence and answer.is_same:
        reasons += _apart(answer.evidence, now)
    return Verified("changed" if reasons else "holds", tuple(reasons) or (_same(answer),), metric, now)


def _answer(notice: Notice, query: Query, frame: pl.DataFrame) -> _Answer:
    """Whose metric's question it is: of the one that today's code asks so, else of the one that decided."""
    segment = canonical(dict(notice.segment))
    listed = notice.evidence or ()
    for one in listed:
        effect = _effect(one, query)
        if effect is not None and _is_asked_so(notice.lever, segment, effect, query):
            return _Answer(query, frame, one, effect)
    decisive = _decisive(notice)
    return _Answer(query, frame, next((one for one in listed if one.metric == decisive), None), None)


def _is_asked_so(lever: str, segment: str, effect: Effect, query: Query) -> bool:
    asked = sums.question(lever, segment, effect)
    return asked.sql == query.sql and dict(asked.params) == query.params


def _effect(one: Evidence, query: Query) -> Effect | None:
    """The effect as far as its question depends on it; None where the period or the metric is none."""
    ends = [_moment(query.params.get(name)) for name in ("since", "until")]
    if one.metric not in judged() or ends[0] is None or ends[1] is None:
        return None
    blocks = max(1, int((ends[1] - ends[0]) / timedelta(seconds=sums.BLOCK_S)))
    values = (one.treated, one.control, one.gain, None, None)
    return Effect(one.metric, ends[0], ends[1], blocks, one.n_treated, one.n_control, *values, one.basis, 1.0, None)


def _decisive(notice: Notice) -> str:
    """The metric that a notice was decided on, as far as its chain tells."""
    chain = notice.causal_chain or Chain()
    for trigger in chain.disable_when:
        kind, metric, action = trigger.kind, trigger.metric, trigger.action
        if notice.reason_code in (kind, f"{kind}.{metric}", f"{kind}.{action}", f"{kind}.{metric}.{action}"):
            return effect_name(metric)
    return effect_name(chain.expected_benefit.metric)


def _same(answer: _Answer) -> str:
    return f"the same {answer.frame.height} rows of sums as at {wording.utc(answer.query.as_of)}"


def _otherwise(notice: Notice, connection: Connection, answer: _Answer) -> Iterator[str]:
    """Why the rows are others than they were, as far as the store can say."""
    if tuple(answer.frame.columns) != answer.query.columns:
        yield f"the columns are {', '.join(answer.frame.columns)}, they were {', '.join(answer.query.columns)}"
    said = [*_dropped(connection, answer.query), *_late(notice, connection, answer)]
    untold = "the rows are others, and neither late spans nor retention say why: requests were corrected, or this is another store"
    yield from said or [untold]


def _dropped(connection: Connection, query: Query) -> Iterator[str]:
    row = connection.sql(_DROPPED, _period(query)).to_dicts()[0]
    if row["rows"]:
        yield f"retention dropped {row['rows']} requests of hours within the period ({row['reasons']})"


def _late(notice: Notice, connection: Connection, answer: _Answer) -> Iterator[str]:
    if answer.effect is None:
        return
    asked = sums.late(notice.lever, canonical(dict(notice.segment)), answer.effect, answer.query.as_of)
    number = connection.sql(asked.sql, asked.params)["requests"].item()
    if number:
        yield f"{number} of its requests have spans that came after {wording.utc(answer.query.as_of)}"


def _gone(connection: Connection, query: Query) -> Iterator[str]:
    dropped = list(_dropped(connection, query))
    if dropped:
        yield f"its rows are gone: {dropped[0]}"
        return
    there = connection.sql(_THERE, _period(query))["requests"].item()
    what = f"of the {there} requests of that time none is of its segment" if there else "it has no request of that time"
    yield f"this store does not have its rows ({what}): another store, or a lever's marks that changed"


def _apart(evidence: Evidence, now: Recomputed) -> Iterator[str]:
    """What a notice tells of its decisive metric that its own sums do not give."""
    if evidence.gain is not None and now.gain is not None and abs(evidence.gain - now.gain) > CLOSE:
        told = f"{wording.percent(evidence.gain)} %", f"{wording.percent(now.gain)} %"
        yield f"the notice says a gain of {told[0]} on {evidence.metric}, and its own sums give {told[1]}"
    unit = judged()[evidence.metric].unit
    for arm, said, is_so in (("treated", evidence.treated, now.treated), ("control", evidence.control, now.control)):
        if said is not None and is_so is not None and abs(said - is_so) > CLOSE * max(abs(said), abs(is_so)):
            yield f"the notice says {wording.value(said, unit)} of {arm}, and its own sums give {wording.value(is_so, unit)}"
    for arm, counted, requests in (("treated", evidence.n_treated, now.n_treated), ("control", evidence.n_control, now.n_control)):
        if abs(counted - requests) > max(1.0, CLOSE * max(counted, requests)):
            yield f"the notice says {counted} requests of {arm}, and its own sums give {requests}"


def _asked_otherwise(notice: Notice, query: Query) -> str:
    """Why no metric of the notice is asked so today: the question is about something else than the notice, or the code asks otherwise."""
    asked = {name.removeprefix("segment_"): value for name, value in query.params.items() if name.startswith("segment_")}
    if asked and asked != notice.segment:
        one, other = canonical(dict(notice.segment)), canonical(asked)
        return f"the notice is of the segment {one}, and its query asks for {other}: one of them was altered"
    if query.params.get("lever", notice.lever) != notice.lever:
        return f"the notice is of {notice.lever}, and its query asks for {query.params['lever']!r}: one of them was altered"
    return "the metric's definition changed: of no metric of the notice does this version ask so"


def _period(query: Query) -> dict[str, str]:
    return {name: query.params.get(name, "") for name in ("since", "until")}


def _moment(text: str | None) -> datetime | None:
    """A time; None where there is none, or one without an offset, which today's code never asks for."""
    try:
        found = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return found if found and found.tzinfo else None
