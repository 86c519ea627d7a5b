"""How large an answer becomes as JSON, told before it is made."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from queries import answer_size, arrow_values

COLUMNS = {
    "nothing": pa.nulls(50),
    "booleans": pa.array([True, None] * 25),
    "numbers": pa.array([2**62 + n for n in range(50)]),
    "texts": pa.array(['a"\\\x01é', None] * 25),
    "blobs": pa.array([b"\x00" * 30] * 50),
    "enum": pa.array(["long" * 100, "b"] * 25).dictionary_encode(),
    "lists": pa.array([[None, True, None], []] * 25, pa.list_(pa.bool_())),
    "structs": pa.array([{"a name": 1, "another": "x"}, None] * 25),
    "maps": pa.array([[("key", "value")], None] * 25, pa.map_(pa.string(), pa.string())),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize(("since", "count"), [(0, 50), (7, 20), (50, 0)])
def test_the_estimate_is_no_less_than_the_json_and_at_most_five_times_as_much(name: str, since: int, count: int) -> None:
    column = COLUMNS[name].slice(since, count)
    text = json.dumps(arrow_values.plain(column), ensure_ascii=False)
    told = answer_size.size(pa.record_batch({name: column}))
    assert len(text.encode()) - 2 <= told.json_bytes <= 5 * len(text.encode())


def test_nested_values_are_counted() -> None:
    assert answer_size.size(pa.record_batch({"lists": COLUMNS["lists"]})).values == 50 + 75
