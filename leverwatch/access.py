"""Configured tokens in, what a caller may do out: constant-time comparison, sessions for browsers, refusals with a reason."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from leverwatch.access_settings import Access, Token

Level = Literal["ingest", "read", "admin"]
SHORTEST_TOKEN = 16
SESSION_S = 7 * 86_400
NOBODY: frozenset[Level] = frozenset()


class AccessError(ValueError):
    """A token cannot be used; names the key in the configuration and what is taken, never the token."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a caller may not do what it asked for."""

    status_code: int
    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of each level, as digests: what a token was cannot be read from here."""

    ingest: tuple[bytes, ...] = field(default=(), repr=False)
    read: tuple[bytes, ...] = field(default=(), repr=False)
    admin: tuple[bytes, ...] = field(default=(), repr=False)
    local: tuple[bytes, ...] = field(default=(), repr=False)

    @property
    def guards_sending(self) -> bool:
        """Whether an export needs a token."""
        return bool(self.ingest)

    @property
    def guards_reading(self) -> bool:
        """Whether pages and answers need a token."""
        return bool(self.read or self.admin)

    @property
    def any(self) -> bool:
        """Whether anything needs a token."""
        return self.guards_sending or self.guards_reading

    def with_local(self, secret: str) -> Tokens:
        """The same, and a secret of this run that may do everything; it guards nothing by itself."""
        return Tokens(self.ingest, self.read, self.admin, (_digest(secret),))

    def granted(self, token: str) -> frozenset[Level]:
        """What a token allows; nothing for one that is unknown. Every known token is compared, whichever fits."""
        given = _digest(token)
        found = NOBODY
        for digest, levels in self._grants():
            if hmac.compare_digest(given, digest):
                found |= levels
        return found

    def session(self, token: str, now_s: float) -> str:
        """What a browser keeps in place of a token: it ends by itself, and with the token."""
        ends_s = int(now_s) + SESSION_S
        return f"{ends_s}.{_seal(_digest(token), ends_s)}"

    def granted_session(self, session: str, now_s: float) -> frozenset[Level]:
        """What a session allows; nothing for one that has ended or was not made here."""
        ends, _, seal = session.partition(".")
        if not (ends.isascii() and ends.isdigit() and len(ends) < 12 and seal.isascii()) or int(ends) <= now_s:
            return NOBODY
        found = NOBODY
        for digest, levels in self._grants():
            if hmac.compare_digest(seal, _seal(digest, int(ends))):
                found |= levels
        return found

    def _grants(self) -> Iterator[tuple[bytes, frozenset[Level]]]:
        everything: frozenset[Level] = frozenset(("ingest", "read", "admin"))
        yield from ((digest, frozenset[Level](("ingest",))) for digest in self.ingest)
        yield from ((digest, frozenset[Level](("read",))) for digest in self.read)
        yield from ((digest, everything) for digest in (*self.admin, *self.local))


def resolve(access: Access, environment: Mapping[str, str]) -> Tokens:
    """The tokens that a configuration names.

    Raises:
        AccessError: one is not there, empty, too short, or holds what no header carries.
    """
    return Tokens(
        *(
            tuple(_digest(_text(f"[access] {level}[{index}]", source, environment)) for index, source in enumerate(sources))
            for level, sources in (("ingest", access.ingest), ("read", access.read), ("admin", access.admin))
        )
    )


def refusal(level: Level, granted: frozenset[Level], *, showed_token: bool) -> Refusal | None:
    """Why what needs a level is refused to a caller of some levels; None where it is not."""
    if level in granted:
        return None
    if granted:
        held = ", ".join(sorted(granted))
        return Refusal(403, "forbidden", f"this token may {held}; this needs {level}", f"a token of [access] {level} is taken")
    how = f"send Authorization: Bearer with a token of [access] {level}"
    if showed_token:
        return Refusal(401, "unauthenticated", "the token is unknown or has ended", how)
    return Refusal(401, "unauthenticated", f"a token that may {level} is needed", how)


def bearer(header: str) -> str:
    """The token of an `Authorization` header; empty where it carries none."""
    scheme, _, token = header.strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _text(where: str, source: Token, environment: Mapping[str, str]) -> str:
    named = [key for key in ("token", "token_file", "token_env") if getattr(source, key)]
    if len(named) != 1:
        msg = f"{where} takes exactly one of token, token_file and token_env, got {' and '.join(named) or 'none'}"
        raise AccessError(msg)
    token = source.token or (_file(where, source.token_file) if source.token_file else environment.get(source.token_env, ""))
    token = token.strip()
    if len(token) < SHORTEST_TOKEN or not (token.isascii() and token.isprintable()) or " " in token:
        what = f"of {source.token_env} " if source.token_env else ""
        msg = f"{where}: the token {what}has {len(token)} characters; {SHORTEST_TOKEN} or more are taken, printable ASCII without blanks"
        raise AccessError(msg)
    return token


def _file(where: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{where}: token_file {path}: {error.strerror if isinstance(error, OSError) else 'is no text'}"
        raise AccessError(msg) from error


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _seal(digest: bytes, ends_s: int) -> str:
    return hmac.new(digest, f"leverwatch session {ends_s}".encode(), "sha256").hexdigest()
