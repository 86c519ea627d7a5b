"""A store in, what each of its relations holds out: rows, bytes, oldest, newest."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from queries.parts import SEALED
from queries.retention import TABLES, table_bytes
from queries.store import Store


@dataclass(frozen=True, slots=True)
class Holding:
    """What a relation or a folder holds. Bytes of rows in the database are estimated from the blocks that their table fills."""

    relation: str
    rows: int | None
    bytes: int
    oldest: datetime | None
    newest: datetime | None
    files: int = 0

    def as_row(self) -> dict[str, Any]:
        """The same as a dict, times as ISO 8601 in UTC."""
        return {name: value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value for name, value in asdict(self).items()}


def holdings(store: Store) -> list[Holding]:
    """One a relation that retention keeps, in the order of its rules."""
    return [_holding(store, relation) for relation in TABLES]


def _holding(store: Store, relation: str) -> Holding:
    table = TABLES[relation][0]
    hot = store.rows(f'select count(*) as held, min("{table.time}") as oldest, max("{table.time}") as newest from {table.name}')[0]
    sealed: dict[str, Any] = {"held": 0, "bytes": 0, "files": 0, "oldest": None, "newest": None}
    if relation in SEALED:
        asked = (
            'select coalesce(sum("rows"), 0)::bigint as held, coalesce(sum(bytes), 0)::bigint as bytes, count(*) as files, '
            "min(since) as oldest, max(until) as newest from parts where relation = $relation"
        )
        sealed = store.rows(asked, {"relation": relation})[0]
    return Holding(
        relation,
        hot["held"] + sealed["held"],
        table_bytes(store, table.name, hot["held"]) + sealed["bytes"],
        min((moment for moment in (hot["oldest"], sealed["oldest"]) if moment), default=None),
        max((moment for moment in (hot["newest"], sealed["newest"]) if moment), default=None),
        sealed["files"],
    )
