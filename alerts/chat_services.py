"""Chat services that Apprise knows: a URL in, what sends to it out; one message in, why it was not taken out."""

from __future__ import annotations

import logging
from typing import Any

KINDS = {"critical": "failure", "warning": "warning", "info": "info"}
"""Apprise's words for severities; what is over is a `success`."""


def service(url: str) -> Any:
    """The service that a URL names; it keeps nothing on disk and reads nothing but this URL.

    Raises:
        ValueError: Apprise knows none, or the URL lacks a part. The message does not hold the URL.
    """
    import apprise  # here: it takes half a second and 20 MB, which only these chats need

    _keep_quiet(logging.getLogger("apprise"))
    found = apprise.Apprise(asset=apprise.AppriseAsset(storage_mode="memory", secure_logging=True))
    if not found.add(url):
        msg = f"url: Apprise {apprise.__version__} takes no such URL; its services and their URLs: https://github.com/caronc/apprise/wiki"
        raise ValueError(msg)
    return found


def refusal(url: str, title: str, text: str, kind: str, timeout_s: float) -> str | None:
    """Sends a message without markup; gives what the service said where it did not take it, None where it did.

    Raises:
        ValueError: there is no such service.
    """
    result = service(url).notify(body=text, title=title, notify_type=kind, body_format="text", timeout=timeout_s)
    if result:
        return None
    return "; ".join(str(entry.message) for entry in result.logs()) or f"not taken: {result.status.name.lower()}"


def _keep_quiet(log: logging.Logger) -> None:
    """Keeps what Apprise logs to itself: it quotes URLs that it cannot read, secrets and all. What went wrong is in its results."""
    if log.propagate:
        log.propagate = False
        log.addHandler(logging.NullHandler())
