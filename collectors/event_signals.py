"""Span events in, the signals they carry out: a batch size at a schedule, how many retractions, the time to the first token."""

from __future__ import annotations

import numpy as np
import polars as pl

from collectors import wire_layout as at
from collectors.columns import Ints
from collectors.dialect_parts import Dialect, EventRule, Source
from collectors.lookup import Lookup, Mask, contains
from collectors.readings import Reals, numbers, texts

NEVER = np.iinfo(np.int64).max


class Events:
    """The events of a batch, with their names, for those dialects whose events say something."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._table = lookup.tables.events
        self._names = pl.Series(lookup.tables.text(self._table[:, at.EVENT_NAME], self._table[:, at.EVENT_NAME_LEN]), dtype=pl.String)

    def chosen(self, dialect_of: Ints, index: int, event: EventRule) -> Ints:
        """The numbers of the events that a rule means."""
        hits = self._of(dialect_of, index, event.names)
        if event.where is not None and hits.any():
            hits &= self._where(event.where.key, event.where.pattern)
        return np.flatnonzero(hits)

    def values(self, chosen: Ints, dialect_of: Ints, index: int, event: EventRule) -> Reals:
        """What the chosen events say of each span, as numbers; NaN where they say nothing."""
        owners, times = self._table[chosen, at.EVENT_SPAN], self._table[chosen, at.EVENT_TIME]
        if event.take == "count":
            counted = np.bincount(owners, minlength=self._lookup.count).astype(np.float64)
            return np.where(counted > 0, counted, np.nan)
        first = self._earliest(owners, times)
        if event.take == "offset":
            return _seconds(first, self._lookup.tables.spans[:, at.START])
        ends = np.flatnonzero(self._of(dialect_of, index, event.until))
        return _seconds(self._latest(self._table[ends, at.EVENT_SPAN], self._table[ends, at.EVENT_TIME]), first)

    def rows(self, chosen: Ints, key: str) -> Ints:
        """For each span the attribute row of the earliest chosen event that has a key; -1 where none has it."""
        row_of = np.full(len(self._table), -1, np.int64)
        rows = self._lookup.rows(at.OF_EVENT, key)
        row_of[self._lookup.tables.attributes[rows, at.OWNER]] = rows
        chosen = chosen[row_of[chosen] >= 0]
        order = np.argsort(-self._table[chosen, at.EVENT_TIME], kind="stable")  # the earliest is written last, and stays
        found = np.full(self._lookup.count, -1, np.int64)
        found[self._table[chosen[order], at.EVENT_SPAN]] = row_of[chosen[order]]
        return found

    def _of(self, dialect_of: Ints, index: int, names: tuple[str, ...]) -> Mask:
        hits: Mask = self._names.is_in(list(names)).to_numpy() & (dialect_of[self._table[:, at.EVENT_SPAN]] == index)
        return hits

    def _where(self, key: str, pattern: str) -> Mask:
        rows = self._lookup.rows(at.OF_EVENT, key)
        hits = np.zeros(len(self._table), np.bool_)
        matching = rows[contains(pl.Series(self._lookup.tables.values(rows), dtype=pl.String), pattern)]
        hits[self._lookup.tables.attributes[matching, at.OWNER]] = True
        return hits

    def _earliest(self, owners: Ints, times: Ints) -> Ints:
        first = np.full(self._lookup.count, NEVER, np.int64)
        np.minimum.at(first, owners, times)
        return first

    def _latest(self, owners: Ints, times: Ints) -> Ints:
        last = np.full(self._lookup.count, -1, np.int64)
        np.maximum.at(last, owners, times)
        return np.where(last < 0, NEVER, last)


def said_by_events(lookup: Lookup, dialect_of: Ints, dialects: tuple[Dialect, ...]) -> list[tuple[str, Reals | pl.Series]]:
    """(signal, its value for each span) for every event rule that some event fits; text as a series, numbers as an array."""
    if not len(lookup.tables.events) or not any(dialect.events for dialect in dialects):
        return []
    events, found = Events(lookup), []
    for index, dialect in enumerate(dialects):
        for event in dialect.events:
            chosen = events.chosen(dialect_of, index, event)
            if len(chosen):
                found.append((event.signal, _value(lookup, events, chosen, dialect_of, index, event)))
    return found


def _value(lookup: Lookup, events: Events, chosen: Ints, dialect_of: Ints, index: int, event: EventRule) -> Reals | pl.Series:
    if event.take != "first":
        return events.values(chosen, dialect_of, index, event)
    row_of = events.rows(chosen, event.key)
    places = np.flatnonzero(row_of >= 0)
    source = Source(event.key, event.unit)
    if event.unit == "text":
        out = pl.Series([None], dtype=pl.String).new_from_index(0, lookup.count)
        return out.scatter(places, pl.Series(texts(lookup.tables, row_of[places], source), dtype=pl.String))
    values = np.full(lookup.count, np.nan)
    values[places] = numbers(lookup.tables, row_of[places], source)
    return values


def _seconds(until: Ints, since: Ints) -> Reals:
    known = (until != NEVER) & (since != NEVER)
    return np.where(known, np.where(known, until - np.where(known, since, 0), 0) / 1e9, np.nan)
