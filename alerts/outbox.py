"""The durable outbox: flips in, rows of `deliveries` out. Who is due what, what waits, what was tried.

What was put in goes out, however long a receiver is away, and of one stream in the order in which it was decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from alerts import canonical, delivery_rows, known_receivers, silence_rows, silences
from alerts.delivery_rows import Attempt as Attempt
from alerts.delivery_rows import Outcome as Outcome
from alerts.due import due_flips as due_flips
from alerts.due import keys_of
from alerts.notice_types import NoticeType, type_of
from alerts.receivers import Receiver
from alerts.silences import FlipKeys, Silence
from queries import files
from queries.store import Store, Transaction

TEST_FLIP = "test"
LONGEST_HELD = timedelta(days=1)  # a clock that was set back holds nobody up for longer
_STOPPED = """
select coalesce(arg_max(outcome, rowid) = 'gone', false) as stopped
from deliveries where receiver = $receiver and outcome in ('gone', 'delivered')
"""
_HELD = "select max(held_until) as held_until from deliveries where receiver = $receiver and held_until is not null"
_AGAIN = """
update deliveries set next_attempt_at = $now from incoming
where deliveries.delivery_id = incoming.delivery_id and deliveries.next_attempt_at > $now
"""
_ASKED = """
select webhook_id, count(*) as asked from deliveries
where outcome = 'pending' and list_contains($ids::varchar[], webhook_id) group by all
"""


class Waiting(NamedTuple):
    """A notice that waits for its next attempt. `tries` counts attempts since it was put in or replayed, `asked` how often that was.

    `keys`, `kind` and `decided_at` are those of its flip; a test, or a notice whose flip is not stored any more, has none.
    """

    flip_id: str
    webhook_id: str
    attempt: int
    tries: int
    put_in_at: datetime
    next_attempt_at: datetime
    asked: int = 1
    keys: FlipKeys | None = None
    kind: NoticeType | None = None
    decided_at: datetime | None = None


def webhook_id(flip_id: str, receiver: str) -> str:
    """The id under which a receiver gets a flip: the same over retries, restarts and replays."""
    return f"msg_{canonical.digest([flip_id, receiver])[:32]}"


def put_in(store: Store, receiver: Receiver, newest_watermark: datetime, now: datetime, *, caught_up: bool, is_new: bool = False) -> int:
    """Stores what is due as pending, before any attempt; gives how many. A receiver that is gone gets nothing new.

    One that `is_new` gets what stands, and is noted as known.
    """
    is_new = is_new and caught_up
    due = due_flips(store, receiver, newest_watermark, now, caught_up=caught_up, is_new=is_new)
    if not is_new and (not due or stopped(store, receiver.name)):
        return 0
    with store.write() as transaction:
        if is_new:
            known_receivers.know(transaction, receiver.name, now)
        if not due or stopped(store, receiver.name):
            return 0
        due = due_flips(transaction, receiver, newest_watermark, now, caught_up=caught_up, is_new=is_new)
        _call_up(transaction, receiver.name, due, now)
        rows = [delivery_rows.pending(flip_id, webhook_id(flip_id, receiver.name), receiver.name, 0, now) for flip_id in due]
        return delivery_rows.insert(transaction, rows)


def put_in_test(store: Store, receiver: Receiver, now: datetime) -> str:
    """Stores a test notice as pending; gives its webhook id. It is tried once."""
    name = webhook_id(f"{TEST_FLIP} {now.isoformat()}", receiver.name)
    with store.write() as transaction:
        delivery_rows.insert(transaction, [delivery_rows.pending(TEST_FLIP, name, receiver.name, 0, now)])
    return name


def waiting(store: Store, receiver: str, now: datetime | None = None) -> list[Waiting]:
    """What waits for a receiver, next first; with `now`, without what a silence holds back then. Of a stream only the oldest.

    A receiver that is gone keeps only replays and tests waiting.
    """
    rows = store.unchanged_rows("deliveries", files.question("outbox_waiting"), {"receiver": receiver})
    if rows and stopped(store, receiver):
        rows = [row for row in rows if _is_asked_for(row)]
    if not rows:
        return []
    held = silence_rows.since(store, now) if now else []
    found = store.rows(files.question("outbox_flips"), {"flip_ids": [row["flip_id"] for row in rows]})
    flips = {flip["flip_id"]: flip for flip in found}
    items = [_waiting(row, flips.get(row["flip_id"])) for row in rows if row["flip_id"] not in flips or flips[row["flip_id"]]["is_first"]]
    items.sort(key=lambda item: (item.next_attempt_at, item.decided_at or item.put_in_at, item.flip_id))
    return [item for item in items if now is None or not _holds_back(held, item, receiver, now)]


def stopped(store: Store, receiver: str) -> bool:
    """Whether a receiver answered 410 and nothing has got through to it since."""
    return bool(store.unchanged_rows("deliveries", _STOPPED, {"receiver": receiver})[0]["stopped"])


def held_until(store: Store, receiver: str, now: datetime) -> datetime | None:
    """Until when a receiver wants nothing, as it said with Retry-After; None where it may be sent to. It may ask for a day at most."""
    found: datetime | None = store.unchanged_rows("deliveries", _HELD, {"receiver": receiver})[0]["held_until"]
    return found if found is not None and now < found <= now + LONGEST_HELD else None


def record(store: Store, item: Waiting, receiver: str, attempt: Attempt) -> None:
    """Stores what came of an attempt at a waiting notice."""
    record_all(store, [(item, attempt)], receiver)


def record_all(store: Store, results: Sequence[tuple[Waiting, Attempt]], receiver: str) -> None:
    """Stores what came of attempts, all or none. A replay that was asked for meanwhile still waits after them, unless it was delivered."""
    with store.write() as transaction:
        asked = dict(transaction.frame(_ASKED, {"ids": [item.webhook_id for item, _ in results]}).iter_rows())
        rows = []
        for item, attempt in results:
            rows.append(delivery_rows.tried(item.flip_id, item.webhook_id, receiver, item.attempt + 1, attempt))
            if attempt.outcome != "delivered" and asked.get(item.webhook_id, 0) > item.asked:
                rows.append(delivery_rows.pending(item.flip_id, item.webhook_id, receiver, item.attempt + 1, attempt.ended_at))
        delivery_rows.insert(transaction, rows)


def replay(store: Store, delivery_id: str, now: datetime) -> Mapping[str, Any] | None:
    """Stores a new pending row for the notice of a delivery, under the same webhook id; None when there is no such delivery."""
    with store.write() as transaction:
        found = transaction.frame(
            "select flip_id, webhook_id, receiver, max(attempt) as attempt from deliveries"
            " where webhook_id = (select webhook_id from deliveries where delivery_id = $id) group by all",
            {"id": delivery_id},
        ).to_dicts()
        if not found:
            return None
        row = delivery_rows.pending(found[0]["flip_id"], found[0]["webhook_id"], found[0]["receiver"], found[0]["attempt"], now)
        delivery_rows.insert(transaction, [row])
    return row


def _holds_back(held: Iterable[Silence], item: Waiting, receiver: str, now: datetime) -> bool:
    return item.keys is not None and item.kind != "lever.resolved" and silences.holds(held, item.keys, receiver, now)


def _call_up(transaction: Transaction, receiver: str, due: list[str], now: datetime) -> None:
    """Lets what waits long for its next attempt go before the newer flips of its stream, which would wait behind it."""
    rows = transaction.frame(files.question("outbox_before"), {"receiver": receiver, "flip_ids": due})
    if len(rows):
        transaction.using(rows, _AGAIN, {"now": now})


def _is_asked_for(row: Mapping[str, Any]) -> bool:
    return bool(row["outcome"] == "pending" and (row["attempt"] > 0 or row["asked"] > 1 or row["flip_id"] == TEST_FLIP))


def _waiting(row: Mapping[str, Any], flip: Mapping[str, Any] | None) -> Waiting:
    named = (row["flip_id"], row["webhook_id"], row["attempt"], row["tries"], row["started_at"], row["next_attempt_at"], row["asked"])
    if flip is None:
        return Waiting(*named)
    return Waiting(*named, keys_of(flip), type_of(flip["state_after"], flip["action"]), flip["decided_at"])
