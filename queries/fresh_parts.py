"""Large batches of rows in, part files out at once: they never pass through the hot table, whose log and checkpoints cost more.

As with sealing, a file is written and synced before the transaction that lists it commits; one that is not listed is no part of the store.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from queries.sealing import fresh_path, list_part, refresh, sync
from queries.store import Store, Transaction

MIN_ROWS = 8_192  # of an hour: fewer go into the hot table, so that files stay few
HOUR_US = 3_600_000_000
ROWS_A_GROUP = 100_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Added:
    """Where rows went: the names of new parts, which rows stand in them, and the others, which are in the hot table."""

    parts: list[str]
    in_part: npt.NDArray[np.bool_]
    hot: pa.Table


def add(store: Store, transaction: Transaction, relation: str, rows: pa.Table) -> Added:
    """Stores rows of a sealed relation: each hour's as a part where there are many, else in the hot table."""
    hours = np.asarray(rows["started_at"].cast(pa.int64())) // HOUR_US
    found, places, counts = np.unique(hours, return_inverse=True, return_counts=True)
    names = [
        write(store, transaction, relation, rows if len(found) == 1 else rows.filter(pa.array(places == place)), int(hour))
        for place, hour in enumerate(found.tolist())
        if counts[place] >= MIN_ROWS
    ]
    in_part = (counts >= MIN_ROWS)[places]
    hot = rows.filter(pa.array(~in_part)) if names else rows
    if hot.num_rows:
        transaction.insert(f"{relation}_hot", hot)
    if names:
        refresh(store, transaction, relation)
    return Added(names, in_part, hot)


def write(store: Store, transaction: Transaction, relation: str, rows: pa.Table, hour: int) -> str:
    """Writes rows of one hour, counted since 1970, as a part and lists it; the view is not refreshed. Gives the part's name."""
    since = EPOCH + timedelta(hours=hour)
    path = fresh_path(store.parts / relation, since)
    path.parent.mkdir(exist_ok=True)
    pq.write_table(rows, path, compression="zstd", compression_level=1, row_group_size=ROWS_A_GROUP)
    sync(path)
    list_part(transaction, relation, path, since, rows.num_rows, level=0)
    return path.name


def read(store: Store, relation: str, name: str, columns: list[str]) -> pa.Table:
    """Some columns of a part."""
    return pq.read_table(store.parts / relation / name, columns=columns)


def merge_next(store: Store, relation: str, many: int) -> int:
    """Makes one part of the fresh parts of an hour that has `many` or more; gives how many rows that were, 0 where no hour has."""
    found = store.rows(
        "select since, level, count(*) as held from parts where relation = $relation and level < 2 "
        'and "file" not in (select "file" from dirty_parts) group by since, level '
        "having held >= $many order by since limit 1",
        {"relation": relation, "many": many},
    )
    if not found:
        return 0
    since, level = found[0]["since"], found[0]["level"]
    with store.write() as transaction:
        of_hour = {"relation": relation, "since": since, "level": level}
        listed = (
            'from parts where relation = $relation and since = $since and level = $level and "file" not in (select "file" from dirty_parts)'
        )
        names = transaction.frame(f'select "file" {listed} order by "file" limit {many}', of_hour)["file"].to_list()
        path = fresh_path(store.parts / relation, since)
        count = _merged([store.parts / relation / name for name in names], path)
        for name in names:
            transaction.execute('delete from parts where relation = $relation and "file" = $file', {"relation": relation, "file": name})
        list_part(transaction, relation, path, since, count, level=level + 1)
        refresh(store, transaction, relation)
    return count


def _merged(sources: list[Path], target: Path) -> int:
    """Writes the rows of some parts into one, a row group at a time; gives how many there were."""
    schema = pa.unify_schemas([pq.read_schema(source) for source in sources], promote_options="permissive")
    count = 0
    with pq.ParquetWriter(target, schema, compression="zstd", compression_level=3) as writer:
        for source in sources:
            with pq.ParquetFile(source) as reader:
                for group in range(reader.num_row_groups):
                    rows = reader.read_row_group(group)
                    writer.write_table(_with_columns(rows, schema), row_group_size=ROWS_A_GROUP)
                    count += rows.num_rows
    sync(target)
    return count


def _with_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the columns of a schema, null where they have none."""
    columns = [rows[field.name] if field.name in rows.schema.names else pa.nulls(rows.num_rows, field.type) for field in schema]
    return pa.table(dict(zip(schema.names, columns, strict=True))).cast(schema)
