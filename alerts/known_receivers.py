"""The configured receivers in, those that are new since the last start out: they hear what stands already, the others have been told."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import polars as pl

from alerts.receivers import Receiver
from queries import files
from queries.store import Store, Transaction

STARTED = ""
"""Stands among the known receivers once a server has started: at the first start of all nobody is new, and history is not told."""
_ROW = {"receiver": pl.String(), "known_since": pl.Datetime("us", "UTC")}

Stream = tuple[str, str, str]
"""A policy, its lever and a segment."""


def newcomers(store: Store, receivers: Collection[str], now: datetime) -> frozenset[str]:
    """The receivers that were not there at the last start. One that is configured no more is forgotten: back again, it is new."""
    known = {row["receiver"] for row in store.rows("select receiver from known_receivers")}
    gone = known - {STARTED, *receivers}
    first = () if STARTED in known else (STARTED, *sorted(set(receivers) - known))
    if gone or first:
        with store.write() as transaction:
            for receiver in sorted(gone):
                transaction.execute("delete from known_receivers where receiver = $receiver", {"receiver": receiver})
            for receiver in first:
                know(transaction, receiver, now)
    return frozenset(receivers) - known - set(first)


def know(transaction: Transaction, receiver: str, now: datetime) -> None:
    """Notes that a receiver was handed what stood."""
    transaction.insert("known_receivers", pl.DataFrame([{"receiver": receiver, "known_since": now}], schema=_ROW))


def history_until(reader: Store | Transaction, receiver: Receiver, now: datetime, *, is_new: bool) -> datetime | None:
    """What was decided by then is history to a receiver: it was not there. None where it was, or is to hear of all that stands.

    Receivers of the first start of all are not told history, whatever they want.
    """
    asked = "select receiver, known_since from known_receivers where receiver in ($receiver, $started)"
    known = dict(reader.frame(asked, {"receiver": receiver.name, "started": STARTED}).iter_rows())
    since = known.get(receiver.name, now if is_new else None)
    is_of_first_start = since == known.get(STARTED)
    return None if since is None or (receiver.standing and not is_of_first_start) else since


def standing(reader: Store | Transaction) -> frozenset[tuple[Stream, str]]:
    """The streams of policies in use in which something is recommended now, each with its state."""
    rows = reader.frame(files.question("outbox_standing")).iter_rows()
    return frozenset(((policy, lever, segment), state) for policy, lever, segment, state in rows)
