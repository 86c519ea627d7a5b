"""One export request on the wire, walked whole: counted and checked with `emit` false, written into tables with it true.

Field numbers are those of opentelemetry-proto's trace/v1, common/v1 and resource/v1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from collectors import wire_layout as at
from collectors.jit import jit
from collectors.wire_fields import FIXED64, LENGTH, VARINT, Buffer, field, is_text
from collectors.wire_keys import key_number
from collectors.wire_layout import BROKEN, OK
from collectors.wire_values import value

Table = Any  # a two-dimensional int64 array
Tables = tuple[Table, Table, Table, Table, Table, Table, Table, Table]  # resources, scopes, spans, attributes, events, links, keys, slots


@jit
def key_value(
    buf: Buffer, pos: int, end: int, emit: bool, counts: Table, attributes: Table, keys: Table, slots: Table, owner_kind: int, owner: int
) -> int:
    """One KeyValue, as a row of the attribute table."""
    key, key_len = 0, 0
    kind, offset, length = 0, 0, 0
    bits: Any = np.int64(0)
    while pos < end:
        number, wire, low, high, pos = field(buf, pos, end)
        if pos < 0:
            return BROKEN
        if wire == LENGTH and number == 1:
            if not is_text(buf, low, high):
                return BROKEN
            key, key_len = low, high - low
        elif wire == LENGTH and number == 2:
            found, found_bits, found_at, found_len = value(buf, low, high)
            if found < 0:
                return BROKEN
            if found > 0:
                kind, bits, offset, length = found, found_bits, found_at, found_len
    if emit:
        index = counts[at.ATTRIBUTES]
        number_of_key = key_number(buf, key, key_len, counts, attributes, keys, slots)
        if number_of_key < 0 or index >= len(attributes):
            counts[at.FULL] = 1
            return BROKEN
        attributes[index, at.OWNER_KIND], attributes[index, at.OWNER], attributes[index, at.KEY] = owner_kind, owner, number_of_key
        attributes[index, at.TYPE], attributes[index, at.BITS] = kind, bits
        attributes[index, at.VALUE], attributes[index, at.VALUE_LEN] = offset, length
    counts[at.ATTRIBUTES] += 1
    return OK


@jit
def event(buf: Buffer, pos: int, end: int, emit: bool, counts: Table, tables: Tables) -> int:
    """One Event of the span being read."""
    index, attributes, keys, slots = counts[at.EVENTS], tables[3], tables[6], tables[7]
    counts[at.EVENTS] += 1
    name, name_len = 0, 0
    time: Any = np.int64(0)
    while pos < end:
        number, wire, low, high, pos = field(buf, pos, end)
        if pos < 0:
            return BROKEN
        if wire == FIXED64 and number == 1:
            time = low
        elif wire == LENGTH and number == 2:
            if not is_text(buf, low, high):
                return BROKEN
            name, name_len = low, high - low
        elif wire == LENGTH and number == 3 and key_value(buf, low, high, emit, counts, attributes, keys, slots, at.OF_EVENT, index) != OK:
            return BROKEN
    if emit:
        if index >= len(tables[4]):
            counts[at.FULL] = 1
            return BROKEN
        row = tables[4][index]
        row[at.EVENT_SPAN], row[at.EVENT_TIME], row[at.EVENT_NAME], row[at.EVENT_NAME_LEN] = counts[at.SPANS], time, name, name_len
    return OK


@jit
def link(buf: Buffer, pos: int, end: int, emit: bool, counts: Table, tables: Tables) -> int:
    """One Link of the span being read."""
    index, attributes, keys, slots = counts[at.LINKS], tables[3], tables[6], tables[7]
    counts[at.LINKS] += 1
    trace, trace_len, span_id, span_len = 0, 0, 0, 0
    while pos < end:
        number, wire, low, high, pos = field(buf, pos, end)
        if pos < 0:
            return BROKEN
        if wire == LENGTH:
            if number == 1:
                trace, trace_len = low, high - low
            elif number == 2:
                span_id, span_len = low, high - low
            elif number == 3 and not is_text(buf, low, high):
                return BROKEN
            elif number == 4 and key_value(buf, low, high, emit, counts, attributes, keys, slots, at.OF_LINK, index) != OK:
                return BROKEN
    if emit:
        if index >= len(tables[5]):
            counts[at.FULL] = 1
            return BROKEN
        row = tables[5][index]
        row[at.LINK_SPAN] = counts[at.SPANS]
        row[at.LINK_TRACE], row[at.LINK_TRACE_LEN], row[at.LINK_ID], row[at.LINK_ID_LEN] = trace, trace_len, span_id, span_len
    return OK


@jit
def status(buf: Buffer, pos: int, end: int, row: Table) -> int:
    """A Status, into the span's row; a repeated one merges."""
    while pos < end:
        number, wire, low, high, pos = field(buf, pos, end)
        if pos < 0:
            return BROKEN
        if wire == LENGTH and number == 2:
            if not is_text(buf, low, high):
                return BROKEN
            row[at.MESSAGE], row[at.MESSAGE_LEN] = low, high - low
        elif wire == VARINT and number == 3:
            row[at.CODE] = low
    return OK


@jit
def span_bytes(buf: Buffer, number: int, low: int, high: int, row: Table) -> int:
    """A length-delimited field of a span that stands in the row itself."""
    if number == 1:
        row[at.TRACE], row[at.TRACE_LEN] = low, high - low
    elif number == 2:
        row[at.SPAN], row[at.SPAN_LEN] = low, high - low
    elif number == 4:
        row[at.PARENT], row[at.PARENT_LEN] = low, high - low
    elif number == 3 or number == 5:
        if not is_text(buf, low, high):
            return BROKEN
        if number == 5:
            row[at.NAME], row[at.NAME_LEN] = low, high - low
    elif number == 15:
        return status(buf, low, high, row)
    return OK


@jit
def span(buf: Buffer, pos: int, end: int, emit: bool, counts: Table, tables: Tables, row: Table) -> int:
    """One Span: its row, its attributes, events and links."""
    index, first = counts[at.SPANS], counts[at.ATTRIBUTES]
    attributes, keys, slots = tables[3], tables[6], tables[7]
    row[:] = 0
    row[at.SCOPE], row[at.RESOURCE] = counts[at.SCOPES] - 1, counts[at.RESOURCES] - 1
    while pos < end:
        number, wire, low, high, pos = field(buf, pos, end)
        if pos < 0:
            return BROKEN
        result = OK
        if wire == LENGTH:
            if number == 9:
                result = key_value(buf, low, high, emit, counts, attributes, keys, slots, at.OF_SPAN, index)
            elif number == 11:
                result = event(buf, low, high, emit, counts, tables)
            elif number == 13:
                result = link(buf, low, high, emit, counts, tables)
            else:
                result = span_bytes(buf, number, low, high, row)
        elif wire == VARINT and number == 6:
            row[at.KIND] = low
        elif wire == FIXED64 and number == 7:
            row[at.START] = low
        elif wire == FIXED64 and number == 8:
            row[at.END] = low
        if result != OK:
            return BROKEN
    if emit:
        if index >= len(tables[2]):
            counts[at.FULL] = 1
            return BROKEN
        tables[2][index] = row
    counts[at.PERIOD] = counts[at.ATTRIBUTES] - first
    counts[at.SPANS] += 1
    return OK


@jit
def is_entity(buf: Buffer, pos: int, end: int) -> bool:
    """Whether the bytes are an EntityRef; nothing of it is read."""
    while pos < end:
        number, wire, low, high, pos = field(buf, pos, end)
        if pos < 0 or (wire == LENGTH and number <= 4 and not is_text(buf, low, high)):
            return False
    return True


@jit
def named_attributes(buf: Buffer, pos: int, end: int, emit: bool, counts: Table, tables: Tables, own: Table) -> int:
    """A Resource (own[0] 1: attributes are field 1) or a scope (own[0] 3, its name into own[2:4]); own[1] is the owner's row."""
    is_scope, attributes, keys, slots = own[0] == 3, tables[3], tables[6], tables[7]
    owner_kind = at.OF_SCOPE if is_scope else at.OF_RESOURCE
    while pos < end:
        number, wire, low, high, pos = field(buf, pos, end)
        if pos < 0:
            return BROKEN
        if wire != LENGTH:
            continue
        if number == own[0]:
            if key_value(buf, low, high, emit, counts, attributes, keys, slots, owner_kind, own[1]) != OK:
                return BROKEN
        elif is_scope and number <= 2:
            if not is_text(buf, low, high):
                return BROKEN
            if number == 1:
                own[2], own[3] = low, high - low
        elif not is_scope and number == 3 and not is_entity(buf, low, high):
            return BROKEN
    return OK


@jit
def scope_spans(buf: Buffer, pos: int, end: int, emit: bool, counts: Table, tables: Tables, row: Table) -> int:
    """One ScopeSpans. The scope may stand after its spans: they refer to it by row."""
    own = np.zeros(4, np.int64)
    own[0], own[1] = 3, counts[at.SCOPES]
    counts[at.SCOPES] += 1
    first, shared = counts[at.SPANS], 0
    while pos < end:
        number, wire, low, high, pos = field(buf, pos, end)
        if pos < 0:
            return BROKEN
        result = OK
        if wire == LENGTH and number == 1:
            result = named_attributes(buf, low, high, emit, counts, tables, own)
            shared += high - low
        elif wire == LENGTH and number == 2:
            result = span(buf, low, high, emit, counts, tables, row)
        elif wire == LENGTH and number == 3 and not is_text(buf, low, high):
            result = BROKEN
        if result != OK:
            return BROKEN
    counts[at.EXPANDED] += (counts[at.SPANS] - first) * shared
    if emit:
        if own[1] >= len(tables[1]):
            counts[at.FULL] = 1
            return BROKEN
        scope = tables[1][own[1]]
        scope[at.SCOPE_NAME], scope[at.SCOPE_NAME_LEN], scope[at.SCOPE_RESOURCE] = own[2], own[3], counts[at.RESOURCES] - 1
    return OK


@jit
def resource_spans(buf: Buffer, pos: int, end: int, emit: bool, counts: Table, tables: Tables, row: Table) -> int:
    """One ResourceSpans."""
    own = np.zeros(4, np.int64)
    own[0], own[1] = 1, counts[at.RESOURCES]
    counts[at.RESOURCES] += 1
    first, shared = counts[at.SPANS], 0
    while pos < end:
        number, wire, low, high, pos = field(buf, pos, end)
        if pos < 0:
            return BROKEN
        result = OK
        if wire == LENGTH and number == 1:
            result = named_attributes(buf, low, high, emit, counts, tables, own)
            shared += high - low
        elif wire == LENGTH and number == 2:
            result = scope_spans(buf, low, high, emit, counts, tables, row)
        elif wire == LENGTH and number == 3 and not is_text(buf, low, high):
            result = BROKEN
        if result != OK:
            return BROKEN
    counts[at.EXPANDED] += (counts[at.SPANS] - first) * shared
    return OK


@jit
def request(buf: Buffer, pos: int, end: int, emit: bool, counts: Table, tables: Tables, body: int) -> int:
    """One ExportTraceServiceRequest in buf[pos:end]. `counts` goes on from where it stands."""
    row = np.zeros(at.SPAN_COLUMNS, np.int64)
    while pos < end:
        number, wire, low, high, pos = field(buf, pos, end)
        if pos < 0:
            return BROKEN
        if wire == LENGTH and number == 1:
            first = counts[at.RESOURCES]
            if resource_spans(buf, low, high, emit, counts, tables, row) != OK:
                return BROKEN
            if emit:
                if first >= len(tables[0]):
                    counts[at.FULL] = 1
                    return BROKEN
                tables[0][first, at.RESOURCE_BODY] = body
    return OK
