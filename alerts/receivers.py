"""Who gets notices: one `[[receivers]]` table in, a checked `Receiver` and its secret out. Secrets are never shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from alerts import signing
from alerts.levers import LEVERS, unknown

DEFAULT_SCHEDULE_S = (5.0, 300.0, 1800.0, 7200.0, 18000.0, 36000.0, 50400.0, 72000.0, 86400.0)
_SOURCES = ("secret", "secret_file", "secret_env")


class ReceiverError(ValueError):
    """A receiver that cannot be used: names it, the key and what it takes; never the secret."""


class Receiver(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One webhook receiver. `retry_schedule_s` holds the waits after the first and each further failed attempt, in seconds."""

    name: Annotated[str, Meta(min_length=1)]
    url: Annotated[str, Meta(min_length=1)]
    kind: Literal["webhook"] = "webhook"
    secret: str | None = None
    secret_file: str | None = None
    secret_env: str | None = None
    levers: tuple[str, ...] = ()
    retry_schedule_s: tuple[Annotated[float, Meta(ge=0.0)], ...] = DEFAULT_SCHEDULE_S

    def __post_init__(self) -> None:
        given = [source for source in _SOURCES if getattr(self, source) is not None]
        if len(given) != 1:
            msg = f"receiver {self.name!r}: takes exactly one of secret, secret_file and secret_env, got {', '.join(given) or 'none'}"
            raise ReceiverError(msg)
        if not self.url.startswith(("http://", "https://")):
            msg = f"receiver {self.name!r}: url takes http:// or https:// and a host"
            raise ReceiverError(msg)
        for lever in self.levers:
            if lever not in LEVERS:
                msg = f"receiver {self.name!r}: levers: {unknown('lever', lever, LEVERS)}"
                raise ReceiverError(msg)

    def __repr__(self) -> str:
        return f"Receiver(name={self.name!r}, kind={self.kind!r})"

    def wants(self, lever: str) -> bool:
        """Whether notices of a lever go to this receiver; without `levers` all do."""
        return not self.levers or lever in self.levers


def distinct(receivers: Iterable[Receiver]) -> tuple[Receiver, ...]:
    """The receivers, once it is known that no two share a name.

    Raises:
        ReceiverError: two have one name; deliveries are kept by it.
    """
    found: dict[str, Receiver] = {}
    for receiver in receivers:
        if receiver.name in found:
            msg = f"receiver {receiver.name!r}: two receivers have this name; takes a name of its own"
            raise ReceiverError(msg)
        found[receiver.name] = receiver
    return tuple(found.values())


def secret_of(receiver: Receiver, environ: Mapping[str, str]) -> str:
    """The receiver's signing secret, from wherever it is kept.

    Raises:
        ReceiverError: the file or variable is not there, or what it holds is no `whsec_` secret.
    """
    try:
        secret = _read(receiver, environ)
        signing.check_secret(secret)
    except OSError as error:
        msg = f"receiver {receiver.name!r}: secret_file {receiver.secret_file}: {error.strerror}"
        raise ReceiverError(msg) from error
    except ValueError as error:
        msg = f"receiver {receiver.name!r}: {error}"
        raise ReceiverError(msg) from None
    return secret


def _read(receiver: Receiver, environ: Mapping[str, str]) -> str:
    if receiver.secret is not None:
        return receiver.secret
    if receiver.secret_file is not None:
        return Path(receiver.secret_file).read_text(encoding="utf-8").strip()
    variable = receiver.secret_env or ""
    if not environ.get(variable):
        msg = f"secret_env: environment variable {variable} is not set"
        raise ValueError(msg)
    return environ[variable].strip()
