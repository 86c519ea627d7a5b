"""`serve.json` in a data folder: who serves it and where. Written by `serve`, read by every command."""

from __future__ import annotations

import os
import stat
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


class LocalAccess(msgspec.Struct, frozen=True):
    """How commands of the user who serves get in: the secret of this run, and the certificate to trust. Empty where none is needed."""

    token: str = ""
    cert_file: str = ""


class _Written(Addresses, frozen=True):
    """What the file holds. `mark` tells the process from a later one of the same number; empty where the system gives no such thing."""

    mark: str = ""
    token: str = ""
    cert_file: str = ""


def write(folder: Path, addresses: Addresses, access: LocalAccess | None = None) -> None:
    """Tells who may read the data folder where to ask. The secret is left out where the file system lets others read it."""
    access = access or LocalAccess()
    temporary = folder / f"{NAME}.{addresses.pid}"
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        token = access.token if _is_private(os.fstat(file.fileno())) else ""
        known = msgspec.structs.asdict(addresses)
        file.write(msgspec.json.encode(_Written(**known, mark=_mark(addresses.pid), token=token, cert_file=access.cert_file)))
    temporary.replace(folder / NAME)


def local_access(folder: Path) -> LocalAccess:
    """How to get in at the server that holds the folder; without the secret where others could have read or written the file."""
    try:
        with (folder / NAME).open("rb") as file:
            is_private = _is_private(os.fstat(file.fileno()))
            written = msgspec.json.decode(file.read(), type=_Written)
    except (OSError, msgspec.DecodeError):
        return LocalAccess()
    return LocalAccess(written.token if is_private else "", written.cert_file)


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


def _is_private(found: os.stat_result) -> bool:
    return not stat.S_IMODE(found.st_mode) & 0o077


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
