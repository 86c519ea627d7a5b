"""What all kinds of receivers are sent by: a route and letters in, what came of sending out, or a `DeliveryError`."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple, Protocol

import httpx

from alerts.credentials import redacted
from alerts.payload import Message
from alerts.receivers import Receiver, ReceiverError

TIMEOUT_S = 15.0
LONGEST_WAIT_S = 86400.0
GONE = 410
_THROTTLED = (429, 503)
_LIMIT_SAID = 200


class DeliveryError(RuntimeError):
    """An attempt that did not deliver. `permanent` ends the attempts; `retry_after_s` is the receiver's own wish."""

    def __init__(self, message: str, permanent: bool, status_code: int | None = None, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.status_code = status_code
        self.retry_after_s = retry_after_s


class Tried(NamedTuple):
    """One attempt to send: to whom, how many notices, what came of it (delivered, retrying, failed or gone), and how long it took."""

    receiver: str
    kind: str
    notices: int
    outcome: str
    status_code: int | None
    elapsed_s: float


class Route(NamedTuple):
    """One receiver with what sending to it takes.

    `read` gives its secret as it is kept now, where that may change; `told` hears what came of each attempt.
    """

    receiver: Receiver
    secret: str
    client: httpx.Client
    rng: random.Random
    read: Callable[[], str] | None = None
    told: Callable[[Tried], None] = lambda _: None

    def secret_now(self) -> str:
        """The secret to send with.

        Raises:
            DeliveryError: it cannot be had at the moment.
        """
        try:
            return self.secret if self.read is None else self.read()
        except ReceiverError as error:
            raise DeliveryError(str(error), permanent=False) from None


class Letter(NamedTuple):
    """A notice on its way to a receiver: its id, what it says, that as the text of a webhook, and what it ends or replaces."""

    webhook_id: str
    message: Message
    text: str
    opened: Message | None = None


class Sent(NamedTuple):
    """What a receiver answered, and what is to be said of a delivery that was not whole."""

    status_code: int | None = None
    note: str | None = None


class Send(Protocol):
    """A kind's way of sending letters as one message.

    Raises:
        DeliveryError: they were not delivered.
    """

    def __call__(self, route: Route, letters: Sequence[Letter], now: datetime) -> Sent:
        """Sends them; gives what was answered."""


class Answer(NamedTuple):
    """What an HTTP receiver answered: its status, its wish to wait, and the beginning of what it said."""

    status_code: int
    retry_after: str | None
    said: str


def post(
    route: Route, url: str, body: bytes, headers: dict[str, str], auth: tuple[str, str] | None = None, *, listens: bool = False
) -> Answer:
    """Posts a body as JSON; gives the status, and with `listens` also the beginning of a refusal.

    Raises:
        DeliveryError: no answer. The error holds neither URL nor secret.
    """
    try:
        with route.client.stream(
            "POST", url, content=body, headers={"content-type": "application/json", **headers}, auth=auth or httpx.USE_CLIENT_DEFAULT
        ) as response:
            said = _beginning(response) if listens and not response.is_success else ""
            return Answer(response.status_code, response.headers.get("retry-after"), said)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        reason = redacted(str(error).replace(url, "the url"), url) or "no answer"
        msg = f"{type(error).__name__}: {reason}"
        raise DeliveryError(msg, permanent=False) from error


def accepted(answer: Answer, now: datetime, permanent: frozenset[int] = frozenset(), said: str = "") -> Sent:
    """Passes an answer of 2xx.

    Raises:
        DeliveryError: any other; for good where the status is 410 or one of `permanent`.
    """
    status = answer.status_code
    if status // 100 == 2:
        return Sent(status)
    wait_s = retry_after_s(answer.retry_after, now) if status in _THROTTLED else 0.0
    msg = f"answered {status}" + (f": {said}" if said else "")
    if status == GONE:
        msg = "410: the receiver is gone; replay a delivery to start again"
    raise DeliveryError(msg, permanent=status == GONE or status in permanent, status_code=status, retry_after_s=wait_s)


def retry_after_s(header: str | None, now: datetime) -> float:
    """A Retry-After header in seconds from now: a number or a date; 0 where it is neither. At most a day."""
    if header is None:
        return 0.0
    try:
        wait_s = float(header) if header.strip().isdigit() else (parsedate_to_datetime(header) - now).total_seconds()
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(max(wait_s, 0.0), LONGEST_WAIT_S)


def _beginning(response: httpx.Response) -> str:
    """The first piece of a refusal's body as one line: all of it might never end."""
    if "content-encoding" in response.headers:
        return ""
    try:
        first = next(response.iter_raw(), b"")
    except (httpx.HTTPError, httpx.StreamError):
        return ""
    return " ".join(first[: 4 * _LIMIT_SAID].decode(errors="replace").split())[:_LIMIT_SAID]
