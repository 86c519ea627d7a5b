"""An endpoint that is one of a server's own ports is refused, under whatever name it is written."""

from __future__ import annotations

import socket

import pytest

from leverwatch.config import ConfigError, read
from leverwatch.observe import own_addresses
from leverwatch.observe.own_addresses import OwnIngestError

PORTS = (8080, 4317, 4318)
HAS_IPV6 = socket.has_ipv6 and any(one[0] == socket.AF_INET6 for one in socket.getaddrinfo("localhost", None))


def refused(endpoint: str, host: str, ports: tuple[int, ...] = PORTS) -> bool:
    try:
        own_addresses.refuse(endpoint, host, ports)
    except OwnIngestError as error:
        assert endpoint in str(error)
        return True
    return False


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]"])
@pytest.mark.parametrize("port", PORTS)
def test_a_port_on_loopback_is_refused_under_every_name(host: str, port: int) -> None:
    assert refused(f"http://{host}:{port}", "127.0.0.1")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "localhost", "[::1]", "[::]", socket.gethostname()])
@pytest.mark.parametrize("listened", ["0.0.0.0", "::", ""])
def test_where_every_address_is_listened_on_each_of_this_machine_is_refused(host: str, listened: str) -> None:
    assert refused(f"https://{host}:4317", listened)


@pytest.mark.parametrize(
    ("endpoint", "listened"),
    [
        ("http://127.0.0.1:4319", "127.0.0.1"),  # a Collector beside it
        ("http://192.0.2.1:4317", "0.0.0.0"),  # an address of nobody here
        ("http://127.0.0.2:4317", "127.0.0.1"),  # another loopback, which another process may listen on
        ("http://no-such-host.invalid:4317", "0.0.0.0"),
    ],
)
def test_another_port_or_machine_is_taken(endpoint: str, listened: str) -> None:
    assert not refused(endpoint, listened)


@pytest.mark.skipif(not HAS_IPV6, reason="localhost is no address of IPv6 here")
def test_a_server_on_ipv6_loopback_knows_itself_by_name() -> None:
    assert refused("http://localhost:4317", "::1")


@pytest.mark.parametrize(
    "endpoint", ["collector:4317", "http://collector", "ftp://a:1", "http://a:1/v1/traces", "http://a:99999", "http://u:secretword@a:1"]
)
def test_what_is_no_address_with_a_port_is_refused_without_telling_a_password(endpoint: str, tmp_path: object) -> None:
    with pytest.raises(ConfigError, match="http:// or https://, a host and a port") as caught:
        read(None, tmp_path, {"LEVERWATCH_OBSERVE_ENDPOINT": endpoint})  # type: ignore[arg-type]
    assert "secretword" not in str(caught.value)
