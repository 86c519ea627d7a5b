"""Dead letters: a receiver whose notices were given up in, the same notices waiting again out, each under its own webhook id."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from alerts import delivery_rows
from queries import files
from queries.store import Store


class Replayed(NamedTuple):
    """How many notices wait again, and how many do not because the receiver has been told something newer of the same stream."""

    replayed: int
    superseded: int


def replay_all(store: Store, receiver: str, now: datetime) -> Replayed:
    """Puts every notice to a receiver that was given up in again, oldest first."""
    with store.write() as transaction:
        rows = transaction.frame(files.question("outbox_dead"), {"receiver": receiver}).to_dicts()
        still = [row for row in rows if not row["is_superseded"]]
        named = [(row["flip_id"], row["webhook_id"], receiver, row["attempt"], now) for row in still]
        delivery_rows.insert(transaction, [delivery_rows.pending(*one) for one in named])
    return Replayed(len(still), len(rows) - len(still))
