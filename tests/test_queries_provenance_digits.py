"""Where numbers come from, as a part keeps it: digits say what the maps say."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from queries import part_writer
from queries.provenance_digits import COLUMNS, DIGITS, KINDS, OTHER, UNSAID, with_digits

MAP = pa.map_(pa.string(), pa.string())


def table(said: list[dict[str, str] | None], **columns: list[float | None]) -> pa.Table:
    maps = pa.array([None if one is None else list(one.items()) for one in said], MAP)
    return pa.table({"provenance": maps, **{name: pa.array(values, pa.float64()) for name, values in columns.items()}})


def digits(rows: pa.Table, column: str) -> str:
    return "".join(text[COLUMNS.index(column)] for text in with_digits(rows)[DIGITS].to_pylist())


def test_each_word_has_its_digit_and_another_is_other() -> None:
    words = [*KINDS[1:], "made up"]
    rows = table([{"ttft_s": word} for word in words], ttft_s=[1.0] * len(words))
    assert digits(rows, "ttft_s") == "".join(map(str, range(1, len(KINDS)))) + str(OTHER)


def test_a_null_column_is_0_and_one_without_a_word_is_unsaid_whatever_the_maps_say() -> None:
    rows = table([{"ttft_s": "span"}, {"ttft_s": "span"}, {}, None], ttft_s=[1.0, None, 1.0, 2.0])
    assert digits(rows, "ttft_s") == f"{KINDS.index('span')}0{UNSAID}{UNSAID}"
    assert digits(rows, "e2e_s") == "0000"


def test_a_slice_and_null_maps_with_entries_are_read_in_their_place() -> None:
    rows = table([{"ttft_s": "log"}, {"e2e_s": "span", "ttft_s": "body"}, {"ttft_s": "span"}], ttft_s=[1.0, 2.0, 3.0])
    assert digits(rows.slice(1), "ttft_s") == f"{KINDS.index('body')}{KINDS.index('span')}"
    maps = rows["provenance"].combine_chunks()
    hidden = pa.MapArray.from_arrays(maps.offsets, maps.keys, maps.items, mask=pa.array([False, True, False]))
    assert digits(rows.set_column(0, "provenance", hidden), "ttft_s") == f"{KINDS.index('log')}{UNSAID}{KINDS.index('span')}"


def test_digits_that_came_along_are_made_anew() -> None:
    rows = with_digits(table([{"ttft_s": "span"}], ttft_s=[1.0]))
    changed = rows.set_column(0, "provenance", table([{"ttft_s": "log"}])["provenance"])
    assert digits(changed, "ttft_s") == str(KINDS.index("log"))


def test_no_rows_and_rows_of_another_relation_are_taken() -> None:
    assert with_digits(table([], ttft_s=[]))[DIGITS].to_pylist() == []
    spans = pa.table({"span_id": ["a"]})
    assert with_digits(spans) is spans


def test_a_part_keeps_them_as_a_dictionary(tmp_path: Path) -> None:
    path = part_writer.write(tmp_path / "x-0000.parquet", table([{"ttft_s": "span"}] * 1000, ttft_s=[1.0] * 1000))
    column = pq.ParquetFile(path).metadata.row_group(0)
    found = {column.column(place).path_in_schema: column.column(place) for place in range(column.num_columns)}[DIGITS]
    assert "RLE_DICTIONARY" in found.encodings
    assert found.total_compressed_size < 200
