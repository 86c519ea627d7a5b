"""`serve.json` in a data folder: who serves it and where. Written by `serve`, read by every command."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

NAME = "serve.json"
_GONE = ("Z", "X", "x")  # states of a process that has ended and that its parent has not asked about yet


class Addresses(msgspec.Struct, frozen=True):
    """Where a server listens, and its process."""

    pid: int
    url: str
    otlp_grpc: str
    otlp_http: str


class _Written(Addresses, frozen=True):
    """What the file holds. `mark` tells the process from a later one of the same number; empty where the system gives no such thing."""

    mark: str = ""


def write(folder: Path, addresses: Addresses) -> None:
    """Tells the folder's other users where to ask."""
    temporary = folder / f"{NAME}.{addresses.pid}"
    written = _Written(**msgspec.structs.asdict(addresses), mark=_mark(addresses.pid))
    temporary.write_bytes(msgspec.json.encode(written))
    temporary.replace(folder / NAME)


def remove(folder: Path) -> None:
    """Takes the file away again."""
    (folder / NAME).unlink(missing_ok=True)


def live(folder: Path) -> Addresses | None:
    """The addresses of the server that holds the folder now; None where none runs."""
    try:
        written = msgspec.json.decode((folder / NAME).read_bytes(), type=_Written)
    except (OSError, msgspec.DecodeError):
        return None
    runs = _mark(written.pid) == written.mark if written.mark else _is_another(written.pid)
    return Addresses(written.pid, written.url, written.otlp_grpc, written.otlp_http) if runs else None


def _mark(pid: int) -> str:
    """The boot and the tick in which a running process started; empty where it runs no more or there is no /proc."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()  # the name before may hold anything
        return "" if fields[0] in _GONE else f"{boot} {fields[19]}"
    except (OSError, IndexError):
        return ""


def _is_another(pid: int) -> bool:
    """Whether a process of this number runs that is not this one: all that can be told without a mark."""
    if pid <= 0 or pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
