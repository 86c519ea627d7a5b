"""Integer tables in, roles and signals out: every span told apart by dialect, its attributes in canonical names and units."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from collectors import wire_layout as at
from collectors.columns import Ints, gathered, interned
from collectors.decode import Tables
from collectors.dialects import Deployment, Dialect, Source, SpanRule, any_of
from collectors.signals import FACTORS, SIGNALS

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Spoken:
    """What a batch's spans say: one row per span. `signals` has the columns of `signals.SIGNALS`; dialect and role may be null."""

    dialect: pl.Series
    role: pl.Series
    signals: pl.DataFrame


def spoken(tables: Tables, dialects: tuple[Dialect, ...], facts: Deployment) -> Spoken:
    """Reads every span of a batch in its dialect."""
    reader = _Reader(tables)
    numbers, rules = reader.rules(dialects)
    rule_at = [rule for dialect in dialects for rule in dialect.spans]
    dialect_at = [index for index, dialect in enumerate(dialects) for _ in dialect.spans]
    names = pl.Series([dialects[index].dialect for index in dialect_at], dtype=pl.String)
    roles = pl.Series([rule.role for rule in rule_at], dtype=pl.String)
    where = _places(rules)
    columns = {}
    for signal in SIGNALS:
        columns[signal] = reader.signal(signal, numbers, dialects, facts)
    signals = pl.DataFrame(columns)
    signals = _with_durations(tables, signals, rules, rule_at)
    signals = _with_first_token(reader, signals, numbers, dialects)
    return Spoken(names.gather(where), roles.gather(where), _with_outcomes(signals, numbers, dialects))


class _Reader:
    """A batch's tables with what is looked up again and again: key numbers, attribute rows of spans, names and scopes."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.count = len(tables.spans)
        self._key_ids = {key: number for number, key in enumerate(tables.keys)}
        self._rows: dict[tuple[int, str], Ints] = {}
        by_key = np.argsort(tables.key_ids, kind="stable")
        bounds = np.searchsorted(tables.key_ids[by_key], np.arange(len(tables.keys) + 1))
        self._of_key = [by_key[low:high] for low, high in pairwise(bounds)]

    def rows(self, owner_kind: int, key: str) -> Ints:
        """The attribute rows of one key of one kind of owner."""
        found = self._rows.get((owner_kind, key))
        if found is None:
            number = self._key_ids.get(key)
            every = self._of_key[number] if number is not None else np.zeros(0, np.int64)
            found = self._rows[owner_kind, key] = every[self.tables.attributes[every, at.OWNER_KIND] == owner_kind]
        return found

    def has(self, key: str) -> Mask:
        """Which spans carry an attribute."""
        mask = np.zeros(self.count, np.bool_)
        mask[self.tables.attributes[self.rows(at.OF_SPAN, key), at.OWNER]] = True
        return mask

    def rules(self, dialects: tuple[Dialect, ...]) -> tuple[Ints, Ints]:
        """For each span the number of its dialect and of its rule over all dialects; -1 where nothing fits."""
        spans, scopes = self.tables.spans, self.tables.scopes
        name_ids, firsts = interned(self.tables.buffer, spans[:, at.NAME], spans[:, at.NAME_LEN])
        names = pl.Series(gathered(self.tables.buffer, spans[firsts, at.NAME], spans[firsts, at.NAME_LEN]))
        scope_names = pl.Series(gathered(self.tables.buffer, scopes[:, at.SCOPE_NAME], scopes[:, at.SCOPE_NAME_LEN]))
        dialect_of, rule_of = np.full(self.count, -1, np.int64), np.full(self.count, -1, np.int64)
        number = 0
        for index, dialect in enumerate(dialects):
            ours = self._in_scope(scope_names, dialect.scopes)
            for key in dialect.has:
                ours &= self.has(key)
            for rule in dialect.spans:
                fits = ours & (dialect_of < 0) if ours.any() else ours
                if fits.any():
                    fits &= _contains(names, rule.name_pattern())[name_ids]
                    fits = self._fitting(rule, fits, scope_names)
                    dialect_of[fits], rule_of[fits] = index, number
                number += 1
        return dialect_of, rule_of

    def _in_scope(self, scope_names: pl.Series, scopes: tuple[str, ...]) -> Mask:
        if scopes == ("*",):
            return np.ones(self.count, np.bool_)
        if not len(scope_names):
            return np.zeros(self.count, np.bool_)
        return _contains(scope_names, any_of(scopes))[self.tables.spans[:, at.SCOPE]]

    def _fitting(self, rule: SpanRule, fits: Mask, scope_names: pl.Series) -> Mask:
        if rule.scopes:
            fits = fits & self._in_scope(scope_names, rule.scopes)
        if rule.where is not None:
            rows = self.rows(at.OF_SPAN, rule.where.key)
            matching = rows[_contains(pl.Series(self.tables.values(rows)), rule.where.pattern)]
            mask = np.zeros(self.count, np.bool_)
            mask[self.tables.attributes[matching, at.OWNER]] = True
            fits = fits & mask
        return fits

    def signal(self, signal: str, dialect_of: Ints, dialects: tuple[Dialect, ...], facts: Deployment) -> pl.Series:
        """One signal of every span: the deployment's word on the span, then on its resource, then the dialect's own."""
        found = pl.Series(signal, [None] * self.count, dtype=_dtype(signal))
        for source in facts.signals.get(signal, ()):
            found = _filled(found, self._column(signal, source, at.OF_SPAN, None))
            found = _filled(found, self._column(signal, source, at.OF_RESOURCE, None))
        for index, dialect in enumerate(dialects):
            for source in dialect.signals.get(signal, ()):
                if len(self.rows(at.OF_SPAN, source.key)):
                    found = _filled(found, self._column(signal, source, at.OF_SPAN, dialect_of == index))
        return found

    def _column(self, signal: str, source: Source, owner_kind: int, among: Mask | None) -> pl.Series | None:
        rows = self.rows(owner_kind, source.key)
        if not len(rows):
            return None
        owners = self.tables.attributes[rows, at.OWNER]
        if owner_kind == at.OF_SPAN and among is not None:
            chosen = among[owners]
            rows, owners = rows[chosen], owners[chosen]
        values = self._values(signal, source, rows)
        places = np.full(self.count if owner_kind == at.OF_SPAN else len(self.tables.resources), -1, np.int64)
        places[owners] = np.arange(len(rows))
        if owner_kind == at.OF_RESOURCE:
            places = places[self.tables.spans[:, at.RESOURCE]]
        return values.gather(_places(places))

    def _values(self, signal: str, source: Source, rows: Ints) -> pl.Series:
        text = pl.Series(signal, self.tables.values(rows), dtype=pl.String)
        kind = SIGNALS[signal]
        if kind == "text":
            if source.unit == "json_list":
                text = text.str.strip_chars('[]"').str.replace_all('", "', ",", literal=True)
            return text.replace("", None)
        number = text.str.strip_chars().cast(pl.Float64, strict=False) * FACTORS[source.unit]
        number = number.set(~number.is_finite(), None)
        return number.round(0).cast(pl.Int64, strict=False) if kind == "whole" else number


def _with_durations(tables: Tables, signals: pl.DataFrame, rules: Ints, rule_at: list[SpanRule]) -> pl.DataFrame:
    """Fills what a span says by its very length, and by which leg it is."""
    seconds = (tables.spans[:, at.END] - tables.spans[:, at.START]) / 1e9
    for number, rule in enumerate(rule_at):
        mask = pl.Series(rules == number)
        if not (rule.gives or rule.phase) or not mask.any():
            continue
        if rule.gives:
            filled = pl.when(mask).then(pl.Series(seconds)).otherwise(pl.col(rule.gives))
            signals = signals.with_columns(filled.alias(rule.gives))
        if rule.phase:
            signals = signals.with_columns(pl.when(mask).then(pl.lit(rule.phase)).otherwise(pl.col("phase")).alias("phase"))
    return signals


def _with_first_token(reader: _Reader, signals: pl.DataFrame, dialect_of: Ints, dialects: tuple[Dialect, ...]) -> pl.DataFrame:
    """TTFT from the first of the events that mark it, where no attribute gives it."""
    events, spans = reader.tables.events, reader.tables.spans
    if not len(events):
        return signals
    names = pl.Series(reader.tables.text(events[:, at.EVENT_NAME], events[:, at.EVENT_NAME_LEN]))
    for index, dialect in enumerate(dialects):
        if dialect.first_token is None:
            continue
        chosen = names.is_in(list(dialect.first_token.events)).to_numpy() & (dialect_of[events[:, at.EVENT_SPAN]] == index)
        if chosen.any():
            first = np.full(len(spans), np.iinfo(np.int64).max, np.int64)
            np.minimum.at(first, events[chosen, at.EVENT_SPAN], events[chosen, at.EVENT_TIME])
            known = first < np.iinfo(np.int64).max
            seconds = pl.Series(np.where(known, (first - spans[:, at.START]) / 1e9, np.nan)).fill_nan(None)
            signals = signals.with_columns(pl.col("ttft_s").fill_null(seconds))
    return signals


def _with_outcomes(signals: pl.DataFrame, dialect_of: Ints, dialects: tuple[Dialect, ...]) -> pl.DataFrame:
    """Each dialect's words for an outcome in ours; a word it does not state becomes `unknown`."""
    for index, dialect in enumerate(dialects):
        if dialect.outcomes and (dialect_of == index).any():
            ours = pl.Series(dialect_of == index) & pl.col("outcome").is_not_null()
            said = pl.col("outcome").str.to_lowercase().replace_strict(dialect.outcomes, default="unknown", return_dtype=pl.String)
            signals = signals.with_columns(pl.when(ours).then(said).otherwise(pl.col("outcome")).alias("outcome"))
    return signals


def _filled(found: pl.Series, more: pl.Series | None) -> pl.Series:
    return found if more is None else found.zip_with(found.is_not_null(), more)


def _places(numbers: Ints) -> pl.Series:
    """Row numbers to gather by, null for -1."""
    return pl.Series(pa.array(numbers, mask=numbers < 0))


def _contains(texts: pl.Series, pattern: str) -> Mask:
    mask: Mask = texts.str.contains(pattern).fill_null(False).to_numpy()
    return mask


def _dtype(signal: str) -> type[pl.DataType]:
    return {"text": pl.String, "whole": pl.Int64, "real": pl.Float64}[SIGNALS[signal]]


def as_arrow(signals: pl.DataFrame) -> pa.StructArray:
    """The signals as the struct column of `spans`."""
    table = signals.to_arrow().combine_chunks()
    arrays = [column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in table.columns]
    return pa.StructArray.from_arrays([_plain_text(array) for array in arrays], names=table.column_names)


def _plain_text(array: pa.Array) -> pa.Array:
    return array.cast(pa.string()) if pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type) else array
