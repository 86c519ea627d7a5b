"""The configuration in, what stands in front of a running server's ports out: tokens, certificates, and the count of the refused."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from leverwatch import access, tls
from leverwatch.config import Config
from leverwatch.guard import WebGuard, server_names
from leverwatch.otlp_guard import GrpcGuard, HttpGuard
from leverwatch.refused import Refused
from leverwatch.serve_file import LocalAccess


class Locks:
    """The tokens and certificates of one running server."""

    def __init__(self, config: Config, environment: Mapping[str, str]) -> None:
        """Reads the tokens and certificates.

        Raises:
            AccessError, TlsError: one cannot be used.
        """
        self._secret = secrets.token_urlsafe(32)
        self.tokens = access.resolve(config.access, environment).with_local(self._secret)
        self.certificates = tls.certificates(config.tls)
        self.refused = Refused()
        self._names = server_names(config.serve.host, (*config.serve.hosts, config.alerts.base_url, socket.gethostname()))
        self._cert_file = str(Path(config.tls.cert_file).absolute()) if self.certificates else ""

    def local(self) -> LocalAccess:
        """How commands on this machine get in."""
        return LocalAccess(self._secret if self.tokens.any else "", self._cert_file)

    def web(self, application: Callable[..., Any], otlp_http_port: int) -> WebGuard:
        """The pages and the API behind their locks."""
        is_tls = self.certificates is not None
        return WebGuard(application, self.tokens, self.refused, self._names, is_tls, otlp_http_port=otlp_http_port)

    def otlp(self, application: Callable[..., Any]) -> HttpGuard:
        """OTLP over HTTP behind its locks."""
        return HttpGuard(application, self.tokens, self.refused, self._names, is_tls=self.certificates is not None)

    def grpc(self) -> dict[str, Any]:
        """What the gRPC server is to be started with."""
        guards = (GrpcGuard(self.tokens, self.refused),) if self.tokens.guards_sending else ()
        return {"interceptors": guards, "credentials": self.certificates.grpc_credentials() if self.certificates else None}
