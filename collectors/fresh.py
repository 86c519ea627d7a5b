"""A stored batch in, what assembly needs of it out: kept in memory, so that what was just written need not be read again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Hashes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

COLUMNS = (
    "trace_id", "span_id", "parent_span_id", "role", "dialect", "status", "started_at", "ended_at", "duration_s", "replica", "sender",
    "levers", "arms",
)  # fmt: skip
IDLE_ROLES = pa.array(["housekeeping"])


@dataclass(frozen=True, slots=True)
class Fresh:
    """The spans of one batch that may belong to a request, as assembly reads them: signals as columns of their own.

    `parts` names the part files that hold them; `traces` has the hash of each row's trace id; `is_known` says whose trace may have
    spans that came before.
    """

    parts: tuple[str, ...]
    spans: pa.Table
    traces: Hashes
    is_known: Mask


def fresh(parts: list[str], rows: pa.Table, traces: Hashes, is_known: Mask) -> Fresh:
    """The rows of a batch without those that belong to no request.

    A span that nobody knows may stand between a gateway and its engine: one with a parent stays where its trace has more.
    """
    role = rows["role"]
    mask = _mask(pc.and_(pc.is_valid(role), pc.invert(pc.is_in(role, IDLE_ROLES))))
    if not mask.all():
        mask = mask | (_mask(pc.is_valid(rows["parent_span_id"])) & (is_known | np.isin(traces, traces[mask])))
    columns = {name: rows[name] for name in COLUMNS}
    signals = rows["signals"].combine_chunks()
    columns |= {signals.type.field(place).name: signals.field(place) for place in range(signals.type.num_fields)}
    chosen = pa.table(columns)
    if mask.all():
        return Fresh(tuple(parts), chosen, traces, is_known)
    return Fresh(tuple(parts), chosen.filter(pa.array(mask)), traces[mask], is_known[mask])


def _mask(flags: pa.ChunkedArray | pa.Array) -> Mask:
    """Flags without nulls as a mask."""
    mask: Mask = np.asarray(flags.combine_chunks() if isinstance(flags, pa.ChunkedArray) else flags).astype(np.bool_)
    return mask
