"""The page of notices: flips with their evidence, what became of telling of them, receivers, and silences."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dashboards import notices_asked, notices_headline, notices_sent, receivers_shown, silences_shown, templating
from dashboards.choice import ChoiceError, title
from dashboards.figure import Sql
from dashboards.notices_sent import Sent
from dashboards.notices_told import told
from dashboards.page import Asked, Page
from pipeline.segments import LEVERS, SPECULATION_KEYS
from queries import files

MOST_UNDELIVERED = 50


@dataclass(frozen=True)
class Undelivered:
    """A notice that has not got through to a receiver, and what it is about."""

    sent: Sent
    about: str
    url: str


def draw(asked: Asked) -> str:
    """The page as HTML. Raises ValueError for a choice that is none, and for a flip that is not there."""
    reader, now = asked.reader, asked.now
    wanted = notices_asked.notices_asked(asked)
    question = files.question("page_notices")
    rows = reader.frame(question, wanted.params).to_dicts()
    if wanted.flip_id is not None and not rows:
        msg = f"there is no flip {wanted.flip_id!r}: GET /api/flips lists those that are kept"
        raise ChoiceError(msg)
    sending = files.question("page_notice_deliveries")
    ids = {"flip_ids": [row["flip_id"] for row in rows]}
    held = silences_shown.silences(reader, now)
    one = rows[0] if wanted.flip_id is not None else None
    total = rows[0]["fitting_n"] if rows else 0
    listed = receivers_shown.receivers(reader, asked.house.receivers() if asked.house else None, now)
    holds = {one.name: one.held_until for one in listed if one.held_until}
    sent = notices_sent.by_flip(reader.frame(sending, ids).to_dicts(), now, holds)
    undelivered, undelivered_n = _undelivered(asked, holds)
    return templating.render(
        "notices.html",
        asked=asked,
        wanted=wanted,
        bar=None if one else notices_asked.bar(asked, wanted),
        flips=[told(row, now, sent.get(row["flip_id"], []), held) for row in rows],
        total=total,
        pages=[] if one else wanted.pages(total),
        headline=notices_headline.headline(reader, listed, held, now),
        undelivered=undelivered,
        undelivered_n=undelivered_n,
        receivers=listed,
        silences=[silence for silence in held if silence.state != "ended"],
        ended=[silence for silence in held if silence.state == "ended"],
        filled=silences_shown.first_filled(wanted.chosen, one),
        hours=silences_shown.HOURS,
        usual_hours=silences_shown.USUAL_HOURS,
        levers=LEVERS,
        keys=SPECULATION_KEYS,
        flips_sql=Sql(question, wanted.params),
        sent_sql=Sql(sending, ids),
    )


def _undelivered(asked: Asked, holds: Mapping[str, datetime]) -> tuple[list[Undelivered], int]:
    """What has not got through, the given up first, and how many there are in all."""
    rows = asked.reader.frame(files.question("page_undelivered"), {"notices": MOST_UNDELIVERED}).to_dicts()
    listed = [Undelivered(notices_sent.sent(row, asked.now, holds), _about(row), f"notices?flip={row['flip_id']}") for row in rows]
    return listed, rows[0]["standing_n"] if rows else 0


def _about(row: Mapping[str, Any]) -> str:
    if row["lever"] is None:
        return "a test" if row["flip_id"] == "test" else "a flip that is not kept any more"
    return f"{row['lever'].replace('_', ' ')} {row['state_after'].replace('_', ' ')}, {title(json.loads(row['segment']))}"


PAGE = Page("/notices", "Notices", 50, draw)
