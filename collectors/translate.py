"""Integer tables in, roles and signals out: every span told apart by dialect, its attributes in canonical names and units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
from msgspec import structs

from collectors import wire_layout as at
from collectors.columns import Ints
from collectors.decode import Tables
from collectors.dialect_parts import Deployment, Dialect, Source, SpanRule, version_key
from collectors.event_signals import said_by_events
from collectors.facts import Said
from collectors.lookup import Lookup, Mask, places
from collectors.readings import Reals, numbers
from collectors.signals import FACTORS, SIGNALS
from collectors.telling import told

PHASES = {"prefill": "prefill", "decode": "decode"}


@dataclass(frozen=True, slots=True)
class Spoken:
    """What a batch's spans say: one row per span. `signals` has the columns of `signals.SIGNALS`; dialect and role may be null."""

    dialect: pl.Series
    role: pl.Series
    signals: pl.DataFrame


def spoken(tables: Tables, dialects: tuple[Dialect, ...], facts: Deployment, said: Said | None = None) -> Spoken:
    """Reads every span of a batch in its dialect; `said` is what is known of the spans beside."""
    lookup, said = Lookup(tables), said or Said()
    dialect_of, rule_of = told(lookup, dialects, facts, said.dialect)
    rules = [rule for dialect in dialects for rule in dialect.spans]
    columns = {signal: _Column(lookup, kind) for signal, kind in SIGNALS.items()}
    inferred: list[tuple[str, Mask]] = []
    speaking = [(index, dialects[index], dialect_of == index) for index in np.unique(dialect_of).tolist() if index >= 0]
    for signal, column in columns.items():
        for place, source in enumerate(facts.signals.get(signal, ())):
            column.read(source, None)
            if signal in said.registry and not place:
                column.fill(said.registry[signal])
            column.read(structs.replace(source, of="resource"), None)
        for index, dialect, theirs in speaking:
            for source in dialect.signals.get(signal, ()):
                meant = _meant(lookup, source, theirs, index, dialect)
                column.read(source, meant)
                if source.absent is not None:
                    inferred.append((signal, column.infer(source, source.absent, meant)))
    _read_rules(columns, rule_of, rules, tables)
    for signal, more in (*said_by_events(lookup, dialect_of, dialects), *said.defaults.items()):
        columns[signal].fill(more)
    columns["inferred"].fill(_named(inferred, lookup.count))
    signals = pl.DataFrame([column.series(signal) for signal, column in columns.items()])
    signals = _with_our_words(signals, dialect_of, dialects)
    names = pl.Series([dialect.speaks_for or dialect.dialect for dialect in dialects], dtype=pl.String)
    roles = pl.Series([rule.role for rule in rules], dtype=pl.String)
    return Spoken(names.gather(places(dialect_of)), roles.gather(places(rule_of)), signals)


class _Column:
    """One signal of every span while it is read; a source fills only those spans that nobody has spoken for."""

    def __init__(self, lookup: Lookup, kind: str) -> None:
        self._lookup, self._kind = lookup, kind
        self._numbers: Reals | None = None
        self._text: pl.Series | None = None

    def read(self, source: Source, meant: Mask | None) -> None:
        """Fills from an attribute, for the spans that are meant (None: all)."""
        row_of = self._lookup.row_of(source.key, source.of)
        if row_of is None:
            return
        known = row_of >= 0 if meant is None else (row_of >= 0) & meant
        every = bool(known.all())
        if not every and not known.any():
            return
        if self._kind == "text":
            self.fill(self._lookup.text(source, row_of, known, every=every))
        else:
            rows = row_of if every else row_of[known]
            self.fill(_spread(numbers(self._lookup.tables, rows, source), known, every))

    def infer(self, source: Source, absent: float, meant: Mask) -> Mask:
        """Fills what a span means that has `beside` and not the key; gives which spans those are."""
        left_out = meant & self._lookup.has(source.beside) & ~self._lookup.has(source.key)
        if self._numbers is not None:
            left_out &= np.isnan(self._numbers)
        if left_out.any():
            self.fill(np.where(left_out, absent * FACTORS[source.unit], np.nan))
        return left_out

    def fill(self, said: Reals | pl.Series) -> None:
        """Takes values for the spans that have none."""
        if isinstance(said, pl.Series):
            said = said.replace("", None) if (said == "").any() else said
            self._text = said if self._text is None else self._text.zip_with(self._text.is_not_null(), said)
        else:
            self._numbers = said if self._numbers is None else np.where(np.isnan(self._numbers), said, self._numbers)

    def set(self, mask: Mask, said: Reals | str) -> None:
        """Puts a value in place of what is there, where the mask says so."""
        if isinstance(said, str):
            before = self.series("")
            self._text = before.zip_with(~pl.Series(mask), pl.Series([said]).new_from_index(0, self._lookup.count))
        else:
            before_numbers = np.full(self._lookup.count, np.nan) if self._numbers is None else self._numbers
            self._numbers = np.where(mask, said, before_numbers)

    def series(self, name: str) -> pl.Series:
        """The signal as it stands: null where nobody spoke."""
        if self._kind == "text":
            return _nulls(pl.String, self._lookup.count, name) if self._text is None else self._text.alias(name)
        if self._numbers is None:
            return _nulls(pl.Int64 if self._kind == "whole" else pl.Float64, self._lookup.count, name)
        values = pl.Series(name, self._numbers)
        if np.isnan(self._numbers).any():
            values = values.fill_nan(None)
        return values.round(0).cast(pl.Int64, strict=False) if self._kind == "whole" else values


def _spread(values: Reals, known: Mask, every: bool) -> Reals:
    if every:
        return values
    out = np.full(len(known), np.nan)
    out[known] = values
    return out


def _meant(lookup: Lookup, source: Source, meant: Mask, index: int, dialect: Dialect) -> Mask:
    """For which of a dialect's spans a source has its meaning: those of the versions it is for."""
    if source.since or source.until:
        version = lookup.versions(index, dialect.version)
        newest = version < 0  # of a version nobody knows the newest meaning is read
        if source.since:
            meant = meant & (newest | (version >= version_key(source.since)))
        if source.until:
            meant = meant & ~newest & (version < version_key(source.until))
    return meant


def _named(inferred: list[tuple[str, Mask]], count: int) -> pl.Series:
    """For each span the signals that it said by leaving them out, joined by commas; null where there is none."""
    columns = [pl.Series(signal, [signal]).new_from_index(0, count).set(~pl.Series(mask), None) for signal, mask in inferred if mask.any()]
    if len(columns) < 2:
        return columns[0] if columns else _nulls(pl.String, count, "inferred")
    named = pl.DataFrame(columns).select(pl.concat_str(pl.all(), separator=",", ignore_nulls=True).alias("inferred"))
    return named["inferred"].replace("", None)


def _read_rules(columns: dict[str, _Column], rule_of: Ints, rules: list[SpanRule], tables: Tables) -> None:
    """Takes what a span says by its very length, and by which leg it is."""
    seconds = (tables.spans[:, at.END] - tables.spans[:, at.START]) / 1e9
    for number, rule in enumerate(rules):
        if not (rule.gives or rule.phase):
            continue
        mask = rule_of == number
        if rule.gives and mask.any():
            columns[rule.gives].set(mask, seconds)
        if rule.phase and mask.any():
            columns["phase"].set(mask, rule.phase)


def _with_our_words(signals: pl.DataFrame, dialect_of: Ints, dialects: tuple[Dialect, ...]) -> pl.DataFrame:
    """Each dialect's words for an outcome in ours, `unknown` for a word it does not state; phases and pools in ours, null for others."""
    for column in ("phase", "pool"):
        if signals[column].null_count() < len(signals):
            ours = pl.col(column).str.to_lowercase().replace_strict(PHASES, default=None, return_dtype=pl.String)
            signals = signals.with_columns(ours.alias(column))
    if signals["outcome"].null_count() == len(signals):
        return signals
    for index, dialect in enumerate(dialects):
        if dialect.outcomes and (dialect_of == index).any():
            ours = pl.Series(dialect_of == index) & pl.col("outcome").is_not_null()
            said = pl.col("outcome").str.to_lowercase().replace_strict(dialect.outcomes, default="unknown", return_dtype=pl.String)
            signals = signals.with_columns(pl.when(ours).then(said).otherwise(pl.col("outcome")).alias("outcome"))
    return signals


def _nulls(dtype: type[pl.DataType], count: int, name: str) -> pl.Series:
    return pl.Series(name, [], dtype=dtype).clear(count)


def as_arrow(signals: pl.DataFrame) -> pa.StructArray:
    """The signals as the struct column of `spans`."""
    table = signals.to_arrow().combine_chunks()
    arrays = [column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in table.columns]
    return pa.StructArray.from_arrays([_plain_text(array) for array in arrays], names=table.column_names)


def _plain_text(array: pa.Array) -> pa.Array:
    return array.cast(pa.string()) if pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type) else array
