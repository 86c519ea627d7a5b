"""Spans, looked up, in; which dialect each speaks and which role it plays out: by force, by scope, by name, by attribute."""

from __future__ import annotations

import numpy as np
import polars as pl

from collectors import wire_layout as at
from collectors.columns import Ints
from collectors.dialect_parts import Deployment, Dialect, SpanRule, Where
from collectors.lookup import Lookup, Mask

Stated = tuple[pl.Series | None, pl.Series | None]
KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")


def told(lookup: Lookup, dialects: tuple[Dialect, ...], facts: Deployment, said: Stated = (None, None)) -> tuple[Ints, Ints]:
    """For each span the number of its dialect and of its rule over all dialects; -1 where nothing fits.

    `said` are the dialects that the registry and the defaults force.
    """
    dialect_of, rule_of = np.full(lookup.count, -1, np.int64), np.full(lookup.count, -1, np.int64)
    forced = _forced(lookup, {dialect.dialect: index for index, dialect in enumerate(dialects)}, facts, said)
    number = 0
    for index, dialect in enumerate(dialects):
        ours = _speakers(lookup, dialect, index, forced)
        if ours is not None:
            stated = None if forced is None else forced == index
            for place, rule in enumerate(dialect.spans):
                fits = _fitting(lookup, rule, ours & (dialect_of < 0), stated)
                dialect_of[fits], rule_of[fits] = index, number + place
        number += len(dialect.spans)
        if (dialect_of >= 0).all():
            break
    return dialect_of, rule_of


def _forced(lookup: Lookup, numbers: dict[str, int], facts: Deployment, said: Stated) -> Ints | None:
    """For each span the number of the dialect that its deployment states; -1 where it states none, or one that is unknown."""
    own, resource = (_stated(lookup, lookup.row_of(facts.dialect, of), numbers) for of in ("span", "resource"))
    registry, default = (None if names is None else _numbered(names, numbers) for names in said)
    forced = None
    for more in (own, registry, resource, default):
        if more is not None:
            forced = more if forced is None else np.where(forced >= 0, forced, more)
    return forced


def _stated(lookup: Lookup, row_of: Ints | None, numbers: dict[str, int]) -> Ints | None:
    if row_of is None:
        return None
    distinct, places = np.unique(row_of, return_inverse=True)
    texts = lookup.tables.values(np.maximum(distinct, 0)).to_pylist()
    found = [numbers.get(text, -1) if row >= 0 else -1 for row, text in zip(distinct.tolist(), texts, strict=True)]
    return np.array(found, np.int64)[places]


def _numbered(names: pl.Series, numbers: dict[str, int]) -> Ints:
    found: Ints = names.replace_strict(numbers, default=-1, return_dtype=pl.Int64).fill_null(-1).to_numpy()
    return found


def _speakers(lookup: Lookup, dialect: Dialect, index: int, forced: Ints | None) -> Mask | None:
    """Which spans may speak a dialect: those that state it, and of those that state none those whose scope and attributes fit."""
    found = [_of(lookup, dialect.scopes, dialect.has, ())]
    found += [_of(lookup, also.scopes, also.has, also.where) for also in dialect.also]
    masks = [mask for mask in found if mask is not None]
    ours: Mask | None = np.logical_or.reduce(masks) if masks else None
    if forced is None:
        return ours
    stated: Mask = forced == index
    return stated if ours is None else np.logical_or(stated, ours & (forced < 0), dtype=np.bool_)


def _of(lookup: Lookup, scopes: tuple[str, ...], has: tuple[str, ...], where: tuple[Where, ...]) -> Mask | None:
    ours = lookup.in_scope(scopes)
    if ours is None:
        return None
    found: Mask = np.logical_and.reduce([ours, *(lookup.has(key) for key in has), *(lookup.holds(condition) for condition in where)])
    return found


def _fitting(lookup: Lookup, rule: SpanRule, fits: Mask, stated: Mask | None) -> Mask:
    """Of some spans those that a rule means; what states its dialect needs no scope."""
    if not fits.any():
        return fits
    fits = fits & lookup.named(rule.name_pattern())
    if rule.kind:
        fits = fits & (lookup.tables.spans[:, at.KIND] == KINDS.index(rule.kind))
    if rule.scopes:
        scoped = lookup.in_scope(rule.scopes)
        scoped = np.zeros(lookup.count, np.bool_) if scoped is None else scoped
        fits = fits & (scoped if stated is None else scoped | stated)
    for condition in rule.conditions():
        if fits.any():
            fits = fits & lookup.holds(condition)
    return fits
