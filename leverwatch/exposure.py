"""Where a server is to listen and what guards it in, a refusal out where anyone on the network could read or write."""

from __future__ import annotations

import socket
from ipaddress import ip_address

from leverwatch.access import Tokens
from leverwatch.access_settings import Port
from leverwatch.config import Serve
from leverwatch.tls import Certificates

PORTS: tuple[tuple[Port, str], ...] = (("web", "pages and API"), ("grpc", "OTLP/gRPC"), ("otlp_http", "OTLP/HTTP"))


class ExposedError(ValueError):
    """The server would be open to the network; names the ports, and what guards them."""


def check(serve: Serve, tokens: Tokens, certificates: Certificates | None) -> None:
    """Refuses to open unguarded ports beyond loopback, unless the configuration says so plainly.

    Raises:
        ExposedError: a port has neither tokens nor client certificates in front of it.
    """
    if serve.allow_open or is_loopback(serve.host):
        return
    guarded = {"web": tokens.guards_reading, "grpc": tokens.guards_sending, "otlp_http": tokens.guards_sending}
    bare = [what for port, what in PORTS if not (guarded[port] or (certificates and certificates.asks_clients(port)))]
    if bare:
        msg = (
            f"[serve] host = {serve.host!r} is reached from other machines, and nothing guards {', '.join(bare)}: set tokens "
            "([access] ingest for OTLP; read and admin for pages and API) or [tls] client_ca_file, listen on 127.0.0.1, "
            "or say [serve] allow_open = true"
        )
        raise ExposedError(msg)


def is_loopback(host: str) -> bool:
    """Whether an address or name is this machine's own alone; every address of a name counts. A name that is none is not."""
    try:
        found = {str(where[4][0]) for where in socket.getaddrinfo(host or None, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)}
    except (OSError, UnicodeError):
        return False
    addresses = [ip_address(text.partition("%")[0]) for text in found]
    return all((getattr(address, "ipv4_mapped", None) or address).is_loopback for address in addresses)
