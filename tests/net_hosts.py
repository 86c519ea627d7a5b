"""Names in, network hosts on one machine out: a namespace each, joined by a switch of its own; each may be cut off and put back."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

NETWORK = "10.77.0"


def reason() -> str:
    """Why hosts cannot be made here; empty where they can."""
    if os.geteuid() != 0:
        return "network namespaces take root"
    if shutil.which("ip") is None:
        return "no `ip`: install iproute2"
    name = f"lw-probe-{uuid.uuid4().hex[:6]}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"network namespaces are not permitted: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "delete", name], check=True)
    return ""


class Hosts:
    """Hosts by name, each with an address."""

    def __init__(self, names: Sequence[str]) -> None:
        self._prefix = f"lw{uuid.uuid4().hex[:5]}"
        self._switch = f"{self._prefix}-switch"
        self.addresses = {name: f"{NETWORK}.{number}" for number, name in enumerate(names, 1)}

    def make(self) -> None:
        """Makes namespaces, a switch in one of its own, and a cable to each host."""
        _ip("netns", "add", self._switch)
        self._on_switch("link", "add", "br0", "type", "bridge")
        self._on_switch("link", "set", "br0", "up")
        for name, address in self.addresses.items():
            _ip("netns", "add", self.namespace(name))
            _ip("-n", self._switch, "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", self.namespace(name))
            self._on_switch("link", "set", name, "master", "br0")
            self._on_switch("link", "set", name, "up")
            _ip("-n", self.namespace(name), "address", "add", f"{address}/24", "dev", "eth0")
            _ip("-n", self.namespace(name), "link", "set", "eth0", "up")
            _ip("-n", self.namespace(name), "link", "set", "lo", "up")

    def remove(self) -> None:
        """Takes all of it away."""
        for name in (*map(self.namespace, self.addresses), self._switch):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)

    def namespace(self, name: str) -> str:
        """The namespace that a host is."""
        return f"{self._prefix}-{name}"

    def words(self, name: str, *command: str) -> list[str]:
        """The words that run a command on a host."""
        return ["ip", "netns", "exec", self.namespace(name), *command]

    @contextmanager
    def cut_off(self, name: str) -> Iterator[None]:
        """Pulls a host's cable while it lasts."""
        self._on_switch("link", "set", name, "down")
        try:
            yield
        finally:
            self._on_switch("link", "set", name, "up")

    def _on_switch(self, *words: str) -> None:
        _ip("-n", self._switch, *words)


@contextmanager
def hosts(*names: str) -> Iterator[Hosts]:
    """Hosts, while it lasts."""
    made = Hosts(names)
    try:
        made.make()
        yield made
    finally:
        made.remove()


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert not done.returncode, f"ip {' '.join(words)}: {done.stderr.strip()}"
