"""An Arrow batch in; how many values it holds and about how many bytes of JSON they become out.

Arrow packs what JSON spells out: a null or a boolean takes a bit or none here and five bytes there, an enum's text stands here once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_OTHER_BYTES = 24  # a number, a moment, an id
_WORD_BYTES = 6  # null, true, false and a comma
_QUOTED_BYTES = 6  # two quotes, a comma and a space, or null, a comma and a space
_CONTROL_BYTES = 5  # what JSON adds to a control character
_FIRST_PRINTABLE = 32


@dataclass(frozen=True, slots=True)
class Size:
    """A number of values, and the bytes that they take as JSON, roughly."""

    values: int
    json_bytes: int


def size(batch: pa.RecordBatch) -> Size:
    """The size of all columns; what lists, structs and maps hold is counted too."""
    sizes = [_sized(column) for column in batch.columns]
    return Size(sum(one.values for one in sizes), sum(one.json_bytes for one in sizes))


def _sized(array: pa.Array) -> Size:
    inner = [_sized(child) for child in _children(array)]
    values, json_bytes = sum(one.values for one in inner), sum(one.json_bytes for one in inner)
    return Size(len(array) + values, _own_bytes(array) + json_bytes)


def _children(array: pa.Array) -> list[pa.Array]:
    kind = array.type
    if pa.types.is_map(kind):
        if not len(array):
            return []
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        return [array.keys.slice(first, last - first), array.items.slice(first, last - first)]
    if pa.types.is_struct(kind):
        return list(array.flatten())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [array.flatten()]
    return []


def _own_bytes(array: pa.Array) -> int:
    """The bytes of one level: a struct's are its field names, a list's its brackets."""
    kind, count = array.type, len(array)
    if pa.types.is_struct(kind):
        return count * (_WORD_BYTES + sum(len(kind.field(n).name.encode()) + _QUOTED_BYTES for n in range(kind.num_fields)))
    if pa.types.is_null(kind) or pa.types.is_boolean(kind) or pa.types.is_nested(kind):
        return count * _WORD_BYTES
    if pa.types.is_dictionary(kind):
        return count * _QUOTED_BYTES + _summed(pc.binary_length(array.dictionary).cast(pa.int64()).take(array.indices))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return count * _QUOTED_BYTES + _summed(pc.binary_length(array)) * 4 // 3
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        letters = _letters(array)
        control = int(np.count_nonzero(letters < _FIRST_PRINTABLE)) * _CONTROL_BYTES
        return count * _QUOTED_BYTES + len(letters) + control + int(np.count_nonzero((letters == ord('"')) | (letters == ord("\\"))))
    return count * _OTHER_BYTES


def _letters(array: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """The UTF-8 bytes of all texts, one after another."""
    _, ends, letters = array.buffers()
    if not len(array) or letters is None:
        return np.empty(0, np.uint8)
    offsets = np.frombuffer(ends, np.int64 if pa.types.is_large_string(array.type) else np.int32)
    return np.frombuffer(letters, np.uint8)[offsets[array.offset] : offsets[array.offset + len(array)]]


def _summed(lengths: pa.Array) -> int:
    return int(pc.sum(lengths.cast(pa.int64())).as_py() or 0)
