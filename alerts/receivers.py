"""Who gets notices: one `[[receivers]]` table in, a checked `Receiver` out, and whether it wants a flip. Secrets are never shown."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from email.utils import parseaddr
from fnmatch import fnmatchcase
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from alerts.levers import LEVERS, unknown
from alerts.receiver_kinds import KINDS, SECRETS, WEBHOOK_V4, ReceiverKind
from pipeline.segments import CELL_SEGMENT_KEYS

DEFAULT_SCHEDULE_S = (5.0, 300.0, 1800.0, 7200.0, 18000.0, 36000.0, 50400.0, 72000.0, 86400.0)
GROUP_WAIT_S = 30.0
GROUPS = ("lever", "policy", "severity", *CELL_SEGMENT_KEYS)
SEVERITIES = ("info", "warning", "critical")
_COMMON = ("name", "kind", "levers", "segments", "severity", "standing", "retry_schedule_s", "heartbeat_s")
MOST_WAIT_S = 31_536_000.0  # a year: moments stay such that a calendar has them
Wait = Annotated[float, Meta(ge=0.0, le=MOST_WAIT_S)]


class ReceiverError(ValueError):
    """A receiver that cannot be used: names it, the key and what it takes; never the secret."""


class Receiver(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One receiver of notices; which keys go with which kind stands in [receivers.md](receivers.md)."""

    name: Annotated[str, Meta(min_length=1, description="what deliveries are kept by")]
    kind: Annotated[Literal["webhook", "alertmanager", "chat", "email", "file"], Meta(description="how notices are sent")] = "webhook"
    url: Annotated[str | None, Meta(description="where to; of a chat: an incoming webhook, or a URL of Apprise")] = None
    url_file: Annotated[str | None, Meta(description="a file with a chat's URL")] = None
    url_env: Annotated[str | None, Meta(description="the variable with a chat's URL")] = None
    format: Annotated[
        Literal["standard", "alertmanager"], Meta(description="the body of a webhook: our own, or version 4 of Alertmanager's")
    ] = "standard"
    secret: Annotated[str | None, Meta(description="`whsec_` and base64: signs webhooks")] = None
    secret_file: Annotated[str | None, Meta(description="a file with it; read again for each attempt")] = None
    secret_env: Annotated[str | None, Meta(description="the variable with it")] = None
    secret_old: Annotated[str | None, Meta(description="the secret before this one: signs too, while receivers change over")] = None
    secret_old_file: Annotated[str | None, Meta(description="a file with it; empty or not there: none")] = None
    secret_old_env: Annotated[str | None, Meta(description="the variable with it; not set: none")] = None
    username: Annotated[str | None, Meta(description="who logs in, at a mail server or Alertmanager")] = None
    password: Annotated[str | None, Meta(description="the password of that user")] = None
    password_file: Annotated[str | None, Meta(description="a file with it; read again for each attempt")] = None
    password_env: Annotated[str | None, Meta(description="the variable with it")] = None
    host: Annotated[str | None, Meta(description="the mail server")] = None
    port: Annotated[
        Annotated[int, Meta(ge=1, le=65535)] | None, Meta(description="its port; unset: 587, with `tls` 465, with `none` 25")
    ] = None
    security: Annotated[
        Literal["starttls", "tls", "none"], Meta(description="how the mail server is spoken to; without the asked one nothing is sent")
    ] = "starttls"
    sender: Annotated[str | None, Meta(description="the address that mails come from")] = None
    to: Annotated[tuple[str, ...], Meta(description="the addresses that mails go to")] = ()
    file: Annotated[str | None, Meta(description="a file that each notice is appended to, as a line of JSON")] = None
    levers: Annotated[tuple[str, ...], Meta(description="only notices about these; unset: all")] = ()
    segments: Annotated[
        tuple[dict[str, str], ...],
        Meta(description="only about a segment that has all keys of one of these; values may hold `*` and `?`; unset: all"),
    ] = ()
    severity: Annotated[Literal["critical", "warning", "info"], Meta(description="only notices as severe as this, or more")] = "info"
    standing: Annotated[
        bool, Meta(description="whether a receiver that is new hears what is recommended already; what is decided later it hears anyway")
    ] = True
    group_wait_s: Annotated[
        Wait | None, Meta(description="seconds in which a chat's or mail's notices are gathered into one message; unset: 30")
    ] = None
    group_by: Annotated[
        tuple[str, ...], Meta(description="notices that differ in one of these are told apart: `lever`, `policy`, `severity`, segment keys")
    ] = ()
    retry_schedule_s: Annotated[
        tuple[Wait, ...], Meta(description="the waits after the first and each further failed attempt, in seconds")
    ] = DEFAULT_SCHEDULE_S
    heartbeat_s: Annotated[
        Annotated[float, Meta(ge=10.0, le=MOST_WAIT_S)] | None,
        Meta(description="seconds between heartbeats while judging runs; unset: none"),
    ] = None

    def __post_init__(self) -> None:
        problem = self._keys_problem() or self._values_problem()
        if problem:
            msg = f"receiver {self.name!r}: {problem}"
            raise ReceiverError(msg)

    def __repr__(self) -> str:
        return f"Receiver(name={self.name!r}, kind={self.kind!r})"

    @property
    def waits_s(self) -> float:
        """For how long notices are gathered into one message; 0 where each is sent by itself."""
        if "group_wait_s" not in KINDS[self.kind].takes:
            return 0.0
        return GROUP_WAIT_S if self.group_wait_s is None else self.group_wait_s

    def wants(self, lever: str, segment: Mapping[str, str] | None = None, severity: str | None = None) -> bool:
        """Whether a flip goes to this receiver: by its lever, its segment, and its severity, `warning` where none was kept."""
        is_severe = SEVERITIES.index(severity if severity in SEVERITIES else "warning") >= SEVERITIES.index(self.severity)
        is_here = not self.segments or any(_holds(pattern, segment or {}) for pattern in self.segments)
        return is_severe and is_here and (not self.levers or lever in self.levers)

    def _keys_problem(self) -> str | None:
        kind = KINDS[self.kind] if self.format == "standard" or self.kind != "webhook" else WEBHOOK_V4
        given = [name for name in self.__struct_fields__ if name not in _COMMON and getattr(self, name) != _defaults()[name]]
        for name in given:
            if name not in kind.keys:
                return f"{name} is no key of kind {self.kind!r}; it takes {', '.join(kind.keys)}"
        missing = next((name for name in kind.needs if name not in given), None)
        if missing:
            return f"kind {self.kind!r} takes {missing}, which is not set"
        return _secrets_problem(kind, given)

    def _values_problem(self) -> str | None:
        if self.url is not None and self.kind != "chat" and not self.url.startswith(("http://", "https://")):
            return "url takes http:// or https:// and a host"
        has_password = any(getattr(self, source) is not None for source in SECRETS["password"])
        if has_password != (self.username is not None):
            return "username and a password are taken together"
        if has_password and self.kind == "email" and self.security == "none":
            return "security takes starttls or tls where there is a password"
        wrong = next((f"{key}: {unknown(what, word, known)}" for key, what, word, known in self._words() if word not in known), None)
        bad_address = next((at for at in (self.sender, *self.to) if at is not None and not _is_address(at)), None)
        return wrong or (f"{bad_address!r} is no address; taken: a@b, or Name <a@b>" if bad_address is not None else None)

    def _words(self) -> Iterable[tuple[str, str, str, tuple[str, ...]]]:
        yield from (("levers", "lever", lever, LEVERS) for lever in self.levers)
        yield from (("segments", "key", key, CELL_SEGMENT_KEYS) for segment in self.segments for key in segment)
        yield from (("group_by", "key", word, GROUPS) for word in self.group_by)


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


def _secrets_problem(kind: ReceiverKind, given: list[str]) -> str | None:
    for secret, is_needed in kind.secrets.items():
        sources = [source for source in SECRETS[secret] if source in given]
        if len(sources) > 1 or (is_needed and not sources):
            one, two, three = SECRETS[secret]
            number = "exactly one" if is_needed else "at most one"
            return f"takes {number} of {one}, {two} and {three}, got {', '.join(sources) or 'none'}"
    return None


@functools.cache
def _defaults() -> Mapping[str, object]:
    return {field.name: field.default for field in msgspec.structs.fields(Receiver)}


def _holds(pattern: Mapping[str, str], segment: Mapping[str, str]) -> bool:
    return all(key in segment and fnmatchcase(segment[key], word.replace("[", "[[]")) for key, word in pattern.items())


def _is_address(text: str) -> bool:
    name, found = parseaddr(text)
    local, _, domain = found.rpartition("@")
    return bool(local and domain) and not any(char.isspace() or ord(char) < 32 for char in found) and "\n" not in name + text
