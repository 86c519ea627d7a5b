"""An endpoint and the addresses that a process listens on in; whether the one is one of the others out, under whatever name."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Sequence

from leverwatch.observe_settings import address_of

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
LOOPBACKS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where a client that is told to connect there ends up


class OwnIngestError(ValueError):
    """What Leverwatch says of itself would go into its own receiver."""


def refuse(endpoint: str, host: str, ports: Iterable[int]) -> None:
    """Raises OwnIngestError where an endpoint leads to one of the ports that are listened on at `host`."""
    parts = address_of(endpoint)
    if parts.port not in set(ports) or not _meets(_resolved(parts.hostname or ""), host):
        return
    msg = (
        f"[observe] endpoint = {endpoint!r} is a port of this very server: its spans would come back as exports, each of"
        " which is told of again; name a Collector, or a backend of traces"
    )
    raise OwnIngestError(msg)


def _meets(addresses: Sequence[Address], host: str) -> bool:
    listened = _resolved(host or "0.0.0.0")  # noqa: S104 - only compared
    if host in ("", *LOOPBACKS) or any(one.is_unspecified for one in listened):
        return any(_is_of_this_machine(one) for one in addresses)
    return any(_reached(one) in listened for one in addresses)


def _resolved(host: str) -> list[Address]:
    """The addresses that a name stands for; none where nobody knows it, who then cannot be sent to either."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [_plain(ipaddress.ip_address(str(one[4][0]).partition("%")[0])) for one in found]


def _plain(address: Address) -> Address:
    """An address of IPv4 that is written as one of IPv6 as what it is."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _reached(address: Address) -> Address:
    return ipaddress.ip_address(LOOPBACKS.get(str(address), str(address)))


def _is_of_this_machine(address: Address) -> bool:
    """Whether a socket may be bound to it: then it is one of this machine's."""
    if address.is_loopback or address.is_unspecified:
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(address), 0))
        except OSError:
            return False
    return True
