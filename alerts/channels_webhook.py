"""Webhooks: one letter in, a signed post out, as Standard Webhooks has it; the body is our own or Alertmanager's version 4."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from alerts import alert_rows, signing
from alerts.channels import Letter, Route, Sent, accepted, post


def send(route: Route, letters: Sequence[Letter], now: datetime) -> Sent:
    """Posts one letter.

    Raises:
        DeliveryError: no answer, or one other than 2xx.
    """
    [letter] = letters
    text = letter.text if route.receiver.format == "standard" else alert_rows.webhook_body(letter, route.receiver.name, now)
    headers = signing.headers(route.secret_now(), letter.webhook_id, now, text)
    return accepted(post(route, route.receiver.url or "", text.encode(), headers), now)
