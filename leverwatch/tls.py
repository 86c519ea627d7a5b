"""Certificate files in, what gRPC and the web servers need for TLS out; read again when the files change."""

from __future__ import annotations

import logging
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from leverwatch.access_settings import Port, Tls

log = logging.getLogger("leverwatch")


class TlsError(ValueError):
    """The certificates cannot be used; names the key in the configuration, the file, and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class _Pem:
    certificate: bytes
    key: bytes
    client_ca: bytes | None


class Certificates:
    """The certificates of a server. A changed file is taken at the next handshake; a broken one is said, and the old ones stay."""

    def __init__(self, tls: Tls) -> None:
        """Reads the files.

        Raises:
            TlsError: one is missing, is no PEM, or the key does not fit the certificate.
        """
        self._tls = tls
        self._lock = threading.Lock()
        self._seen = self._stamps()
        self._pem, self._contexts = self._read()

    def asks_clients(self, port: Port) -> bool:
        """Whether a port takes only clients with a certificate of our authorities."""
        return bool(self._tls.client_ca_file) and port in self._tls.client_ca_ports

    def context(self, port: Port) -> ssl.SSLContext:
        """What a web server of ours serves TLS with."""
        return self._contexts[self.asks_clients(port)]

    def grpc_credentials(self) -> Any:
        """What the gRPC server serves TLS with."""
        return grpc.dynamic_ssl_server_credentials(self._grpc_config(), self._changed_grpc_config, self.asks_clients("grpc"))

    def _grpc_config(self) -> Any:
        pem = self._pem
        return grpc.ssl_server_certificate_configuration([(pem.key, pem.certificate)], pem.client_ca if self.asks_clients("grpc") else None)

    def _changed_grpc_config(self) -> Any:
        before = self._pem
        self._refresh()
        return None if self._pem is before else self._grpc_config()

    def _refresh(self) -> None:
        with self._lock:
            stamps = self._stamps()
            if stamps == self._seen:
                return
            self._seen = stamps
            try:
                self._pem, self._contexts = self._read()
            except TlsError as error:
                log.warning("the certificates stay as they were: %s", error)

    def _read(self) -> tuple[_Pem, dict[bool, ssl.SSLContext]]:
        pem = _Pem(
            _bytes("cert_file", self._tls.cert_file),
            _bytes("key_file", self._tls.key_file),
            _bytes("client_ca_file", self._tls.client_ca_file) if self._tls.client_ca_file else None,
        )
        contexts = {False: _server_context(self._tls, None), True: _server_context(self._tls, pem.client_ca)}
        for asks, context in contexts.items():
            context.sni_callback = self._at_handshake(asks)
        return pem, contexts

    def _at_handshake(self, asks: bool) -> Any:
        """Every handshake comes by here, also of clients that name no server."""

        def renew(socket: ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
            self._refresh()
            if socket.context is not self._contexts[asks]:
                socket.context = self._contexts[asks]

        return renew

    def _stamps(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(_stamp(Path(name)) for name in (self._tls.cert_file, self._tls.key_file, self._tls.client_ca_file) if name)


def certificates(tls: Tls) -> Certificates | None:
    """The certificates that a configuration names; None where it names none.

    Raises:
        TlsError: they cannot be used.
    """
    if tls == Tls():
        return None
    for key in ("cert_file", "key_file"):
        if not getattr(tls, key):
            msg = f"[tls] {key} is missing; cert_file and key_file are taken together"
            raise TlsError(msg)
    return Certificates(tls)


def _server_context(tls: Tls, client_ca: bytes | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(tls.cert_file, tls.key_file, _no_passphrase)
    except (OSError, ValueError) as error:
        msg = f"[tls] cert_file {tls.cert_file} and key_file {tls.key_file}: {_what_is_wrong(error)}"
        raise TlsError(msg) from error
    if client_ca is not None:
        try:
            context.load_verify_locations(cadata=client_ca.decode("ascii"))
        except (OSError, ValueError) as error:
            msg = f"[tls] client_ca_file {tls.client_ca_file}: no PEM certificates"
            raise TlsError(msg) from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _no_passphrase() -> str:
    msg = "the key has a passphrase; a key without one is taken"
    raise ValueError(msg)


def _what_is_wrong(error: Exception) -> str:
    reason = getattr(error, "reason", None) or ""
    if "MISMATCH" in reason:
        return "the key does not fit the certificate"
    if isinstance(error, ssl.SSLError):
        return f"no PEM certificate and key ({reason or 'PEM lib'})"
    return str(error)


def _bytes(key: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        msg = f"[tls] {key} {path}: {error.strerror}"
        raise TlsError(msg) from error


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
