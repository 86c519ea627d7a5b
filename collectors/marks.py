"""A batch's attributes in, what is odd about the deployment's own marks out: a misspelled arm drops its requests from every comparison."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from collectors import wire_layout as at
from collectors.columns import Ints
from collectors.decode import Tables
from collectors.dialect_parts import Deployment, Dialect

OF_THE_TAP = "leverwatch.body."  # facts of an answer, no marks; not all of them are signals
MOST_SAID = 50  # a batch; a sender that makes up names must not fill the ledger


def odd_marks(tables: Tables, facts: Deployment, dialects: tuple[Dialect, ...]) -> list[tuple[int, str, int]]:
    """How often each body of a batch carries a mark that nobody reads: (number of the body, what is odd, how often)."""
    found: Counter[tuple[int, str]] = Counter()
    known = _known_keys(facts, dialects)
    for number, key in enumerate(tables.keys):
        if not key.startswith(facts.prefixes.own) or key.startswith(OF_THE_TAP):
            continue
        rows = np.flatnonzero(tables.key_ids == number)
        if key not in known:
            _count(found, tables, rows, f"attribute {key!r} is unknown{_nearest(key, known)}")
        elif key.startswith(facts.prefixes.arms):
            _count_odd_values(found, tables, rows, f"{key} = {{!r}} is no arm", facts.marks.arms)
        elif key == facts.dialect:
            _count_odd_values(found, tables, rows, f"{key} = {{!r}} is no dialect", [dialect.dialect for dialect in dialects])
    listed = found.most_common(MOST_SAID)
    return [(body, said, count) for (body, said), count in listed]


def _count_odd_values(found: Counter[tuple[int, str]], tables: Tables, rows: Ints, told: str, taken: Sequence[str]) -> None:
    values = pl.Series(tables.values(rows), dtype=pl.String)
    for value in values.unique().to_list():
        if value not in taken:
            said = f"{told.format(value)}{_nearest(str(value), taken) or ';'} taken: {', '.join(taken)}"
            _count(found, tables, rows[(values == value).fill_null(value is None).to_numpy()], said)


def _count(found: Counter[tuple[int, str]], tables: Tables, rows: Ints, said: str) -> None:
    kinds, owners = tables.attributes[rows, at.OWNER_KIND], tables.attributes[rows, at.OWNER]
    resources = np.concatenate([owners[kinds == at.OF_RESOURCE], tables.spans[owners[kinds == at.OF_SPAN], at.RESOURCE]])
    bodies, counts = np.unique(tables.resources[resources, at.RESOURCE_BODY], return_counts=True)
    found.update({(body, said): count for body, count in zip(bodies.tolist(), counts.tolist(), strict=True)})


def _known_keys(facts: Deployment, dialects: tuple[Dialect, ...]) -> set[str]:
    sources = [
        source.key
        for signals in (facts.signals, *(dialect.signals for dialect in dialects))
        for many in signals.values()
        for source in many
    ]
    marks = [f"{prefix}{lever}" for prefix in (facts.prefixes.levers, facts.prefixes.arms) for lever in facts.marks.levers]
    return {*sources, *marks, *facts.replica.keys, facts.dialect}


def _nearest(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
