"""Chats: letters in, one short message out, to an incoming webhook as Slack has them or to any service that Apprise knows.

Names in a message come from traffic, so nothing in it may be markup or call people.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from alerts import canonical, chat_services, notice_text
from alerts.channels import TIMEOUT_S, DeliveryError, Letter, Route, Sent, accepted, post
from alerts.credentials import redacted

MOST_LETTERS = 5
"""In one message: with their reasons cut they fit the shortest limit of a common service, 2,000 characters."""
_REFUSED = frozenset({400, 404})  # the channel or the webhook is no more, or takes nothing of this form
_LIMIT_ALONE, _LIMIT_LINE, _LIMIT_AMONG, _LIMIT_SAID = 1700, 450, 150, 200
_SLACK = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def send(route: Route, letters: Sequence[Letter], now: datetime) -> Sent:
    """Sends letters as one message.

    Raises:
        DeliveryError: it was not taken; for good where an incoming webhook answers 400, 404 or 410.
    """
    url, headline = route.secret_now(), notice_text.headline([letter.message for letter in letters])
    text = body(letters, now)
    if not url.startswith(("http://", "https://")):
        return _by_service(url, quiet(headline), quiet(text), _severity(letters))
    said = f"*{_plain(headline)}*\n{_plain(text)}".translate(_SLACK)
    answer = post(route, url, canonical.text({"text": said}).encode(), {}, listens=True)
    return accepted(answer, now, _REFUSED, redacted(answer.said, url))


def body(letters: Sequence[Letter], now: datetime | None = None) -> str:
    """What stands under the headline: why, how urgent, what to do, how to silence and a link; of several what each is about, and why."""
    if len(letters) == 1:
        lines = notice_text.brief(letters[0].message, now, _LIMIT_LINE)
        while len(lines) > 2 and len("\n".join(lines)) > _LIMIT_ALONE:
            del lines[-2]  # the reason and the page stay
        return "\n".join(lines)
    return "\n".join(_among(letter) for letter in letters)


def quiet(text: str) -> str:
    """A text in which no `@` calls anybody."""
    return re.sub("@(?=\\w)", "@\u200b", text)


def _among(letter: Letter) -> str:
    message = letter.message
    lines = (
        f"• {notice_text.title(message)}",
        notice_text.cut(notice_text.reason(message), _LIMIT_AMONG),
        notice_text.link(message, "page"),
    )
    return "\n".join(line for line in lines if line)


def _plain(text: str) -> str:
    """Without the signs that incoming webhooks read as markup; `_` is left, names are full of it."""
    return quiet(re.sub("[*`]", "", text))


def _severity(letters: Sequence[Letter]) -> str:
    found = {
        chat_services.KINDS.get(str(letter.message.data.get("severity")), "info")
        for letter in letters
        if letter.message.type != "lever.resolved"
    }
    return next((kind for kind in ("failure", "warning", "info") if kind in found), "success")


def _by_service(url: str, title: str, text: str, kind: str) -> Sent:
    said = chat_services.refusal(url, title, text, kind, TIMEOUT_S)
    if said is None:
        return Sent()
    raise DeliveryError(notice_text.cut(redacted(said, url), _LIMIT_SAID), permanent=False)
