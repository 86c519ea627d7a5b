"""A receiver's secrets: where they are kept in, their text out, checked. No error and no log ever holds one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from alerts import chat_services, signing
from alerts.receiver_kinds import SECRETS
from alerts.receivers import Receiver, ReceiverError

_PIECES = re.compile(r"[/:@?&=#,;\s]+")
_SHORTEST = 6  # what is shorter is a word such as `hook`, and stays readable


def secret_of(receiver: Receiver, environ: Mapping[str, str]) -> str:
    """What sending to a receiver takes: a webhook's secrets (the old one after a space), a chat's URL, a password; else empty.

    Raises:
        ReceiverError: the file or variable is not there, or what it holds cannot be used.
    """
    try:
        if receiver.kind == "webhook":
            return " ".join(_signing_secrets(receiver, environ))
        if receiver.kind == "chat":
            return _chat_url(_read(receiver, "url", environ))
        return _read(receiver, "password", environ) if receiver.username is not None else ""
    except ValueError as error:
        msg = f"receiver {receiver.name!r}: {error}"
        raise ReceiverError(msg) from None


def redacted(text: str, secret: str) -> str:
    """A text without a secret, or any part of a URL that is one."""
    whole = text.replace(secret, "...") if secret else text
    pieces = sorted({piece for piece in _PIECES.split(secret) if len(piece) >= _SHORTEST}, key=len, reverse=True)
    for piece in pieces:
        whole = whole.replace(piece, "...")
    return whole


def _signing_secrets(receiver: Receiver, environ: Mapping[str, str]) -> list[str]:
    is_signed = any(getattr(receiver, source) is not None for source in SECRETS["secret"])
    old = _read_old(receiver, environ)
    found = [*([_read(receiver, "secret", environ)] if is_signed else []), *([old] if old else [])]
    for secret in found:
        signing.check_secret(secret)
    return found


def _read_old(receiver: Receiver, environ: Mapping[str, str]) -> str:
    """The old secret; one that is not there any more is how a change of secrets ends."""
    if receiver.secret_old_file is not None and not Path(receiver.secret_old_file).exists():
        return ""
    if receiver.secret_old_env is not None and not environ.get(receiver.secret_old_env):
        return ""
    return _read(receiver, "secret_old", environ)


def _read(receiver: Receiver, secret: str, environ: Mapping[str, str]) -> str:
    """The text of a secret from whichever key is set; empty where none is."""
    given, file, variable = (getattr(receiver, source) for source in SECRETS[secret])
    if given is not None:
        return str(given)
    if file is not None:
        return _of_file(f"{secret}_file", Path(file))
    if variable is None:
        return ""
    if not environ.get(variable):
        msg = f"{secret}_env: environment variable {variable} is not set"
        raise ValueError(msg)
    return environ[variable].strip()


def _of_file(key: str, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        msg = f"{key} {file}: {error.strerror}"
        raise ValueError(msg) from error
    except UnicodeDecodeError:
        msg = f"{key} {file}: takes UTF-8 text"
        raise ValueError(msg) from None


def _chat_url(url: str) -> str:
    if "://" not in url or any(char.isspace() for char in url):
        msg = "url takes https:// of an incoming webhook, or a service:// of Apprise such as discord://"
        raise ValueError(msg)
    if not url.startswith(("http://", "https://")):
        chat_services.service(url)
    return url
