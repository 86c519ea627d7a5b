"""A store and a period in, what a report of it reads out: hot rows and those part files alone that hold rows of the period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from queries.parts import layout_of, quoted
from queries.provenance_digits import DIGITS
from queries.report_rows import Source
from queries.store import Store, Transaction

HOT = "requests_hot"
MOST_TEXTS = 32
_IN_PERIOD = (
    'select "file", "rows" from parts where relation = \'requests\' '
    "and ($since::timestamptz is null or coalesce(last_start, until) >= $since) "
    'and ($until::timestamptz is null or coalesce(first_start, since) <= $until) order by since, "file"'
)


def sources(store: Store, transaction: Transaction, since: datetime | None, until: datetime | None) -> tuple[Source, ...]:
    """The rows of `requests` as of a transaction, of a period at least: a source for the hot rows and one for the parts of each layout.

    Parts of one layout have the same columns: one of them is opened to know which.
    """
    names = transaction.frame(_IN_PERIOD, {"since": since, "until": until})["file"].to_list()
    by_layout: dict[str, list[Path]] = {}
    for name in names:
        by_layout.setdefault(layout_of(Path(name).stem), []).append(store.parts / "requests" / name)
    columns = set(transaction.frame(f"select * from {HOT} limit 0").columns)
    held = _columns(transaction, {layout: files[0] for layout, files in by_layout.items() if layout})
    parts = [_source(files, held.get(layout, set()), columns) for layout, files in by_layout.items()]
    return (Source(HOT), *(replace(part, texts=_texts(transaction, part.sql)) if part.has_digits else part for part in parts))


def whole_files(store: Store, transaction: Transaction, since: datetime | None, until: datetime | None) -> tuple[list[Path], int]:
    """The parts that hold rows of a period, and how many rows they have; none unless all have every column, and the digits too."""
    found = transaction.frame(_IN_PERIOD, {"since": since, "until": until})
    files = [store.parts / "requests" / name for name in found["file"]]
    by_layout = {layout_of(file.stem): file for file in files}
    wanted = {DIGITS, *transaction.frame(f"select * from {HOT} limit 0").columns}
    held = _columns(transaction, by_layout) if "" not in by_layout else {"": set()}
    return (files, int(found["rows"].sum())) if all(wanted <= names for names in held.values()) else ([], 0)


def _texts(transaction: Transaction, sql: str) -> tuple[str, ...]:
    """The different digits that rows carry, none where they are many; 5 ns a request."""
    found = transaction.frame(f"select distinct {DIGITS} as text from {sql} limit {MOST_TEXTS + 1}")["text"]
    texts = sorted(text for text in found if text and text.isdigit())
    return tuple(texts) if len(texts) == len(found) <= MOST_TEXTS else ()


def _source(files: Sequence[Path], held: set[str], columns: set[str]) -> Source:
    """Parts whose columns are `held`; of older ones nothing is known, and what a part lacks is null."""
    listed = ", ".join(map(quoted, files))
    if columns <= held:
        return Source(f"read_parquet([{listed}])", DIGITS in held)
    reader = f"read_parquet([{listed}], union_by_name = {not held})"
    return Source(f"(select * from {HOT} where false union all by name select * from {reader})", DIGITS in held)


def _columns(transaction: Transaction, files: Mapping[str, Path]) -> dict[str, set[str]]:
    """The names that stand in a file of each layout; those inside of lists and maps among them."""
    if not files:
        return {}
    listed = ", ".join(map(quoted, files.values()))
    rows = transaction.frame(f"select file_name, list(distinct name) as names from parquet_schema([{listed}]) group by all")
    found = {Path(name).name: set(names) for name, names in rows.rows()}
    return {layout: found[file.name] for layout, file in files.items()}
