"""Tables and what they say in, rows of `spans` out, as one Arrow table."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from collectors import wire_ids
from collectors import wire_layout as at
from collectors.columns import Bytes, Ints, hex_ids
from collectors.decode import Tables
from collectors.dialects import Deployment
from collectors.facts import Said
from collectors.translate import Spoken, as_arrow

Hashes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
KINDS = pa.array(["unspecified", "internal", "server", "client", "producer", "consumer"])
STATUSES = pa.array(["unset", "ok", "error"])
LATEST_NS = 4_102_444_800 * 1_000_000_000  # the year 2100: what lies behind it is no time, and sums with it would overflow
TEXT_MAP = pa.map_(pa.string(), pa.string())


@dataclass(frozen=True, slots=True)
class Arrival:
    """One body of a batch as it came: who sent it, and when it was received."""

    sender: str
    received_unix_nano: int


@dataclass(frozen=True, slots=True)
class Ids:
    """What tells the good spans of a batch apart: hashes of their ids, when they began, and which ids stand there more than once."""

    of_trace: Hashes
    of_span: Hashes
    starts_ns: Ints
    copies: Mask


@dataclass(frozen=True, slots=True)
class Rows:
    """A batch ready to store: `spans` has one row per good span, `arrival` its body's number, `refused` a reason per bad one.

    `odd` says what is odd about stored spans, as (body, what, how often).
    """

    spans: pa.Table
    arrival: Ints
    ids: Ids
    refused: list[tuple[int, str]]
    odd: list[tuple[int, str, int]] = field(default_factory=list)


def span_rows(tables: Tables, spoken: Spoken, facts: Deployment, arrivals: list[Arrival], said: Said | None = None) -> Rows:
    """The rows of `spans` (see the schema) of a batch; spans without usable ids or times are refused, each with its reason."""
    spans = tables.spans
    arrival, said = arrival_of(tables), said or Said()
    ids = {
        "trace_id": _ids(tables, spans[:, at.TRACE], spans[:, at.TRACE_LEN], 16),
        "span_id": _ids(tables, spans[:, at.SPAN], spans[:, at.SPAN_LEN], 8),
        "parent_span_id": _ids(tables, spans[:, at.PARENT], spans[:, at.PARENT_LEN], 8),
    }
    good, refused = _usable(spans, ids, arrival)
    resources = _maps(tables, at.OF_RESOURCE, len(tables.resources))
    senders = pa.array([one.sender for one in arrivals], pa.string())
    received = pa.array([one.received_unix_nano // 1000 for one in arrivals], pa.timestamp("us", "UTC"))
    replica = replicas(tables, facts, arrivals)
    columns = {
        **ids,
        "name": tables.text(spans[:, at.NAME], spans[:, at.NAME_LEN]),
        "kind": _named(KINDS, spans[:, at.KIND]),
        "started_at": _instants(spans[:, at.START]),
        "ended_at": _instants(spans[:, at.END]),
        "start_unix_nano": pa.array(spans[:, at.START]),
        "duration_s": pa.array((spans[:, at.END] - spans[:, at.START]) / 1e9),
        "status": _named(STATUSES, spans[:, at.CODE]),
        "status_message": _or_null(tables.text(spans[:, at.MESSAGE], spans[:, at.MESSAGE_LEN]), spans[:, at.MESSAGE_LEN] == 0),
        "scope": tables.text(tables.scopes[:, at.SCOPE_NAME], tables.scopes[:, at.SCOPE_NAME_LEN]).take(pa.array(spans[:, at.SCOPE])),
        "service": _resource_text(tables, ("service.name",)),
        "replica": replica,
        "sender": senders.take(pa.array(arrival)),
        "dialect": spoken.dialect.to_arrow().cast(pa.string()),
        "role": spoken.role.to_arrow().cast(pa.string()),
        "signals": as_arrow(spoken.signals),
        "levers": _prefixed(tables, facts.prefixes.levers, said.levers),
        "arms": _prefixed(tables, facts.prefixes.arms, said.arms),
        "resource": resources.take(pa.array(spans[:, at.RESOURCE])),
        **_attributes(tables),
        "events": _events(tables),
        "links": _links(tables),
        "received_at": received.take(pa.array(arrival)),
    }
    table = pa.table(columns)
    if not good.all():
        table, arrival = table.filter(pa.array(good)), arrival[good]
    return Rows(table, arrival, told_apart(tables.buffer, spans[good]), refused)


def told_apart(buffer: Bytes, spans: Ints) -> Ids:
    """What tells the spans of a batch apart."""
    traces, ids = np.ascontiguousarray(spans[:, at.TRACE]), np.ascontiguousarray(spans[:, at.SPAN])
    of_trace, of_span = np.empty(len(spans), np.uint64), np.empty(len(spans), np.uint64)
    wire_ids.hash_ids(buffer, traces, ids, of_trace, of_span)
    slots = np.full(1 << max(4, int(2 * len(spans)).bit_length()), -1, np.int64)
    copies = np.zeros(len(spans), np.bool_)
    wire_ids.mark_copies(buffer, traces, ids, of_span, slots, copies)
    return Ids(of_trace, of_span, np.ascontiguousarray(spans[:, at.START]), copies)


def _usable(spans: Ints, ids: dict[str, pa.Array], arrival: Ints) -> tuple[Mask, list[tuple[int, str]]]:
    bad_id = _nulls(ids["trace_id"]) | _nulls(ids["span_id"])
    bad_parent = ~np.isin(spans[:, at.PARENT_LEN], (0, 8)) & ~bad_id
    start, end = spans[:, at.START], spans[:, at.END]
    bad_time = ((start <= 0) | (end <= 0) | (start > LATEST_NS) | (end > LATEST_NS)) & ~bad_id & ~bad_parent
    refused = [(int(body), "trace_id is not 16 bytes, span_id not 8, or one of them is zero") for body in arrival[bad_id]]
    refused += [(int(body), "parent_span_id is not 8 bytes") for body in arrival[bad_parent]]
    refused += [(int(body), "start or end time is missing or out of range") for body in arrival[bad_time]]
    return ~(bad_id | bad_parent | bad_time), refused


def _ids(tables: Tables, starts: Ints, lengths: Ints, width: int) -> pa.Array:
    """Ids as lower-case hex; null where one is not `width` bytes, or all zero, which says none."""
    whole = lengths == width
    buffer = tables.buffer if len(tables.buffer) >= width else np.zeros(width, np.uint8)
    text = hex_ids(buffer, np.where(whole, starts, 0), width)
    return _or_null(text, ~whole | np.asarray(pa.compute.equal(text, "00" * width)))


def _named(names: pa.Array, numbers: Ints) -> pa.Array:
    """The names of an enum's numbers; a number that is unknown here stands for the first, unspecified."""
    numbers = numbers.astype(np.int32)  # as wide as protobuf takes an enum
    known = (numbers >= 0) & (numbers < len(names))
    return names.take(pa.array(np.where(known, numbers, 0)))


def _nulls(values: pa.Array) -> Mask:
    mask: Mask = np.asarray(values.is_null())
    return mask


def _instants(nanoseconds: Ints) -> pa.Array:
    return pa.array(nanoseconds // 1000).cast(pa.timestamp("us", "UTC"))


def _or_null(values: pa.Array, nulls: Mask) -> pa.Array:
    return pa.compute.if_else(pa.array(nulls), pa.scalar(None, values.type), values)


def _offsets(owners: Ints, count: int) -> pa.Array:
    counted = np.bincount(owners, minlength=count) if len(owners) else np.zeros(count, np.int64)
    return pa.array(np.concatenate([[0], np.cumsum(counted)]).astype(np.int32))


def _maps(tables: Tables, owner_kind: int, count: int) -> pa.MapArray:
    """The attributes of each owner of a kind, as MAP(VARCHAR, VARCHAR)."""
    rows = tables.rows_of(owner_kind)
    chosen = tables.attributes[rows]
    keys = _keys(tables, rows, owner_kind)
    return pa.MapArray.from_arrays(_offsets(chosen[:, at.OWNER], count), keys, tables.values(rows))


def _attributes(tables: Tables) -> dict[str, pa.MapArray]:
    """The attributes of each span: those of type double as MAP(VARCHAR, DOUBLE), the others as MAP(VARCHAR, VARCHAR)."""
    rows, count = tables.rows_of(at.OF_SPAN), len(tables.spans)
    is_real = tables.attributes[rows, at.TYPE] == at.DOUBLE
    told, reals = rows[~is_real], rows[is_real]
    owners = tables.attributes[:, at.OWNER]
    return {
        "attributes": pa.MapArray.from_arrays(_offsets(owners[told], count), _keys(tables, told, at.OF_SPAN), tables.values(told)),
        "numbers": pa.MapArray.from_arrays(_offsets(owners[reals], count), _keys(tables, reals, at.OF_SPAN), tables.reals(reals)),
    }


def _keys(tables: Tables, rows: Ints, owner_kind: int) -> pa.Array:
    """The keys of attribute rows: as a dictionary where there are many, which is written and read faster."""
    names, numbers = pa.array(tables.keys, pa.string()), pa.array(tables.key_ids[rows].astype(np.int32))
    return pa.DictionaryArray.from_arrays(numbers, names) if owner_kind in (at.OF_SPAN, at.OF_RESOURCE) else names.take(numbers)


def _resource_text(tables: Tables, keys: tuple[str, ...]) -> pa.Array:
    """The first of some resource attributes that speaks, for each span."""
    by_resource: list[str | None] = [None] * len(tables.resources)
    for key in keys:
        if key not in tables.keys:
            continue
        rows = tables.rows_of(at.OF_RESOURCE)
        rows = rows[tables.key_ids[rows] == tables.keys.index(key)]
        for owner, text in zip(tables.attributes[rows, at.OWNER].tolist(), tables.values(rows).to_pylist(), strict=True):
            by_resource[owner] = by_resource[owner] or text
    return pa.array(by_resource, pa.string()).take(pa.array(tables.spans[:, at.RESOURCE]))


def arrival_of(tables: Tables) -> Ints:
    """The number of the body that each span came in."""
    bodies: Ints = tables.resources[tables.spans[:, at.RESOURCE], at.RESOURCE_BODY] if len(tables.spans) else np.zeros(0, np.int64)
    return bodies


def replicas(tables: Tables, facts: Deployment, arrivals: list[Arrival]) -> pa.Array:
    """The replica of each span: what it says, else its resource, else its sender."""
    senders = pa.array([one.sender for one in arrivals], pa.string()).take(pa.array(arrival_of(tables)))
    named = _resource_text(tables, facts.replica.keys)
    return pa.compute.coalesce(_span_text(tables, facts.replica.keys[0]), named, senders)


def _span_text(tables: Tables, key: str) -> pa.Array:
    count = len(tables.spans)
    if key not in tables.keys:
        return pa.nulls(count, pa.string())
    rows = tables.rows_of(at.OF_SPAN)
    rows = rows[tables.key_ids[rows] == tables.keys.index(key)]
    places = np.full(count, -1, np.int64)
    places[tables.attributes[rows, at.OWNER]] = np.arange(len(rows))
    return tables.values(rows).take(pa.array(places, mask=places < 0))


def _prefixed(tables: Tables, prefix: str, more: pl.DataFrame | None) -> pa.Array:
    """Attributes whose key starts with a prefix, of the span or else its resource, as a map of what follows it; `more` is said beside."""
    numbers = [number for number, key in enumerate(tables.keys) if key.startswith(prefix) and len(key) > len(prefix)]
    count = len(tables.spans)
    if not numbers and more is None:
        return pa.nulls(count, TEXT_MAP)
    on_span = _said(tables, at.OF_SPAN, numbers, prefix, 0)
    on_resource = _said(tables, at.OF_RESOURCE, numbers, prefix, 2)
    resource_of = pl.DataFrame({"span": np.arange(count), "owner": tables.spans[:, at.RESOURCE]})
    inherited = resource_of.join(on_resource, on="owner").drop("owner")
    known = [on_span.rename({"owner": "span"}), inherited.select("span", "key", "value", "rank")]
    said = pl.concat(known if more is None else [*known, more])
    said = said.sort("span", "key", "rank").unique(["span", "key"], keep="first", maintain_order=True)
    owners = said["span"].to_numpy()
    keys, values = said["key"].to_arrow().cast(pa.string()), said["value"].to_arrow().cast(pa.string())
    maps = pa.MapArray.from_arrays(_offsets(owners, count), keys, values)
    return _or_null(maps, np.bincount(owners, minlength=count) == 0)


def _said(tables: Tables, owner_kind: int, numbers: list[int], prefix: str, rank: int) -> pl.DataFrame:
    rows = tables.rows_of(owner_kind)
    rows = rows[np.isin(tables.key_ids[rows], numbers)]
    keys = pl.Series([key.removeprefix(prefix) for key in tables.keys], dtype=pl.String).gather(tables.key_ids[rows])
    values = pl.Series(tables.values(rows), dtype=pl.String)
    frame = pl.DataFrame({"owner": tables.attributes[rows, at.OWNER], "key": keys, "value": values})
    return frame.with_columns(pl.lit(rank).alias("rank"))


def _events(tables: Tables) -> pa.ListArray:
    events = tables.events
    inner = pa.StructArray.from_arrays(
        [
            tables.text(events[:, at.EVENT_NAME], events[:, at.EVENT_NAME_LEN]),
            pa.array(events[:, at.EVENT_TIME]),
            _maps(tables, at.OF_EVENT, len(events)),
        ],
        names=["name", "time_unix_nano", "attributes"],
    )
    return pa.ListArray.from_arrays(_offsets(events[:, at.EVENT_SPAN], len(tables.spans)), inner)


def _links(tables: Tables) -> pa.ListArray:
    links = tables.links
    inner = pa.StructArray.from_arrays(
        [
            _ids(tables, links[:, at.LINK_TRACE], links[:, at.LINK_TRACE_LEN], 16),
            _ids(tables, links[:, at.LINK_ID], links[:, at.LINK_ID_LEN], 8),
            _maps(tables, at.OF_LINK, len(links)),
        ],
        names=["trace_id", "span_id", "attributes"],
    )
    return pa.ListArray.from_arrays(_offsets(links[:, at.LINK_SPAN], len(tables.spans)), inner)
