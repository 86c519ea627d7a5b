"""How receivers do, which silences last and what stands in, what matters most about telling people out, in a line and some sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dashboards import theme
from dashboards.reader import Reader
from dashboards.receivers_shown import ReceiverShown
from dashboards.silences_shown import SilenceShown
from queries import files


@dataclass(frozen=True)
class Headline:
    """What matters most, and the sentences below it."""

    title: str
    css: str
    text: list[str]


def headline(reader: Reader, receivers: Sequence[ReceiverShown], silences: Sequence[SilenceShown], now: datetime) -> Headline:
    """Of the receivers in use: what was given up, before what is not well, before what waits."""
    row = reader.frame(files.question("page_notices_standing")).row(0, named=True)
    used = [one for one in receivers if one.is_configured]
    given_up, waiting = sum(one.given_up for one in used), sum(one.waiting for one in used)
    active = sum(silence.state == "active" for silence in silences)
    text = [_standing(row["stands"], row["in_shadow"]), _newest(row["flipped_at"], now)]
    text += [f"{_many(active, 'silence')} {'lasts' if active == 1 else 'last'}."] if active else []
    text += [] if used else ["No receiver is configured: nobody is told."]
    if given_up:
        return Headline(f"{_many(given_up, 'notice')} {'was' if given_up == 1 else 'were'} given up", "bad", text)
    if any(one.css == "bad" for one in used):
        return Headline("A receiver is not well", "bad", text)
    if waiting:
        return Headline(f"{_many(waiting, 'notice')} {'waits' if waiting == 1 else 'wait'} to be delivered", "warn", text)
    if row["delivered_at"]:
        return Headline("Every notice got through", "good", text)
    return Headline("Nothing was sent yet", "quiet", text)


def _standing(stands: int, in_shadow: int) -> str:
    if not stands:
        return "No recommendation stands now."
    shadow = f" ({theme.count(in_shadow)} in shadow: nobody is told)" if in_shadow else ""
    return f"{_many(stands, 'recommendation')} to change a lever {'stands' if stands == 1 else 'stand'} now{shadow}."


def _newest(at: datetime | None, now: datetime) -> str:
    return f"The newest flip was {theme.age((now - at).total_seconds())} ago." if at else "No lever has changed its state yet."


def _many(number: int, what: str) -> str:
    return f"{theme.count(number)} {what}" + ("" if number == 1 else "s")
