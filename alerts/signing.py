"""Standard Webhooks signatures: secrets, an id, a time and a body in, the three headers out."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime

from standardwebhooks import Webhook

PREFIX = "whsec_"


class SecretError(ValueError):
    """Not a `whsec_` secret. The message never holds it."""


def check_secret(secret: str) -> None:
    """Passes a secret that can sign.

    Raises:
        SecretError: it lacks the prefix, is not base64, or is empty.
    """
    if not secret.startswith(PREFIX):
        msg = f"the secret does not start with {PREFIX}; takes {PREFIX} and base64"
        raise SecretError(msg)
    text = secret.removeprefix(PREFIX)
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        msg = f"the secret is not base64 after {PREFIX}, or empty; takes {PREFIX} and the base64 of 24 to 64 random bytes"
        raise SecretError(msg)


def headers(secrets: str, webhook_id: str, at: datetime, body: str) -> dict[str, str]:
    """The headers that sign a body sent at a time, which is sent as whole seconds: by each secret, where spaces part several.

    Without a secret there is no signature.
    """
    sent_at = at.astimezone(UTC)
    named = {"webhook-id": webhook_id, "webhook-timestamp": str(int(sent_at.timestamp()))}
    signatures = [Webhook(secret).sign(webhook_id, sent_at, body) for secret in secrets.split()]
    return {**named, "webhook-signature": " ".join(signatures)} if signatures else named
