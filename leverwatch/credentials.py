"""Arguments, environment and `serve.json` in, what a client shows a server and what it trusts out."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leverwatch.connection import ConnectError

TOKEN, CA_FILE = "LEVERWATCH_TOKEN", "LEVERWATCH_CA_FILE"
CERT_FILE, KEY_FILE = "LEVERWATCH_CLIENT_CERT_FILE", "LEVERWATCH_CLIENT_KEY_FILE"


@dataclass(frozen=True, slots=True)
class Credentials:
    """A token, whom to trust, and a certificate of one's own; empty is none. `pinned` is the very certificate that is to answer."""

    token: str = field(default="", repr=False)
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    pinned: str = ""

    def client(self) -> dict[str, Any]:
        """Arguments of an HTTP client.

        Raises:
            ConnectError: a certificate file cannot be used.
        """
        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        return {"headers": headers, "verify": self._context()} if self._has_files() else {"headers": headers}

    def _has_files(self) -> bool:
        return bool(self.ca_file or self.cert_file or self.pinned)

    def _context(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.ca_file or self.pinned or None)
            if self.cert_file:
                context.load_cert_chain(self.cert_file, self.key_file or None)
        except OSError as error:
            msg = f"certificate files {self.ca_file or self.pinned} {self.cert_file} {self.key_file}: {error}"
            raise ConnectError(msg) from error
        if self.pinned and not self.ca_file:
            context.check_hostname = False  # the certificate itself is known: what name it bears does not matter
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        return context


def credentials(
    token: str | None = None,
    token_file: str | Path | None = None,
    ca_file: str | Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Credentials:
    """What was given, else what the environment has.

    Raises:
        ConnectError: the token's file cannot be read, or holds what is no token.
    """
    if token is None and token_file is not None:
        try:
            token = Path(token_file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            msg = f"token file {token_file}: {error.strerror if isinstance(error, OSError) else 'is no text'}"
            raise ConnectError(msg) from error
    shown = (token if token is not None else environment.get(TOKEN, "")).strip()
    if not shown.isascii() or len(shown.split()) > 1:
        msg = f"the token {f'in {token_file}' if token_file else 'that was given'} is none: one line of ASCII is taken"
        raise ConnectError(msg)
    trusted = str(ca_file) if ca_file else environment.get(CA_FILE, "")
    return Credentials(shown, trusted, environment.get(CERT_FILE, ""), environment.get(KEY_FILE, ""))
