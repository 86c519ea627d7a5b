"""`serve.json` in a data folder: who serves it and where. Written by `serve`, read by every command."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

NAME = "serve.json"


class Addresses(msgspec.Struct, frozen=True):
    """Where a server listens, and its process."""

    pid: int
    url: str
    otlp_grpc: str
    otlp_http: str


def write(folder: Path, addresses: Addresses) -> None:
    """Tells the folder's other users where to ask."""
    temporary = folder / f"{NAME}.{addresses.pid}"
    temporary.write_bytes(msgspec.json.encode(addresses))
    temporary.replace(folder / NAME)


def remove(folder: Path) -> None:
    """Takes the file away again."""
    (folder / NAME).unlink(missing_ok=True)


def live(folder: Path) -> Addresses | None:
    """The addresses of the server that holds the folder now; None where none runs."""
    try:
        addresses = msgspec.json.decode((folder / NAME).read_bytes(), type=Addresses)
        os.kill(addresses.pid, 0)
    except (OSError, msgspec.DecodeError):
        return None
    return addresses
