"""Attribute rows in, values in canonical units out: text as rows that say it, numbers as numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from collectors import wire_layout as at
from collectors.columns import Ints
from collectors.decode import Tables
from collectors.dialect_parts import Source
from collectors.signals import FACTORS

Reals = npt.NDArray[np.float64]
# How Rust writes a duration for people: the number, then the unit without a space.
RUST_FACTORS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "μs": 1e-6, "us": 1e-6, "ns": 1e-9}

FLAGS = {"true": "1", "1": "1", "false": "0", "0": "0"}


def numbers(tables: Tables, rows: Ints, source: Source) -> Reals:
    """The values of attribute rows as numbers in the canonical unit; NaN where a value is no finite number."""
    kinds = tables.attributes[rows, at.TYPE]
    if (kinds == at.DOUBLE).all() and not source.pattern:
        values = np.ascontiguousarray(tables.attributes[rows, at.BITS]).view(np.float64)
    elif (kinds == at.INT).all() and not source.pattern:
        values = tables.attributes[rows, at.BITS].astype(np.float64)
    else:
        values = _parsed(tables, rows, source)
    if source.missing is not None:
        values = np.where(values == source.missing, np.nan, values)
    factor = FACTORS[source.unit]
    values = values if factor == 1.0 else values * factor
    finite = np.isfinite(values)
    return values if finite.all() else np.where(finite, values, np.nan)


def texts(tables: Tables, rows: Ints, source: Source) -> pa.StringArray:
    """The values of attribute rows as text; null where nothing is said."""
    said = tables.values(rows)
    if source.unit == "text" and not source.pattern:
        return said
    text = pl.Series(said, dtype=pl.String)
    if source.pattern:
        text = text.str.extract(source.pattern)
    if source.unit == "json_list":
        text = text.str.strip_chars('[]"').str.replace_all('" *, *"', ",")
    return text.to_arrow().cast(pa.string())


def _parsed(tables: Tables, rows: Ints, source: Source) -> Reals:
    text = pl.Series(tables.values(rows), dtype=pl.String)
    if source.pattern:
        text = text.str.extract(source.pattern)
    text = text.str.strip_chars()
    if source.unit == "flag":
        text = text.str.to_lowercase().replace_strict(FLAGS, default=None, return_dtype=pl.String)
    if source.unit == "rust_duration":
        return _rust_durations(text)
    values: Reals = text.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    return values


def _rust_durations(text: pl.Series) -> Reals:
    value = text.str.extract(r"^([0-9.]+)(?:s|ms|µs|μs|us|ns)$").cast(pl.Float64, strict=False)
    factor = text.str.extract(r"^[0-9.]+(s|ms|µs|μs|us|ns)$").replace_strict(RUST_FACTORS, default=None, return_dtype=pl.Float64)
    seconds: Reals = (value * factor).fill_null(np.nan).to_numpy()
    return seconds
