"""`leverwatch.connect`: a folder or a server's address in, a connection out."""

from __future__ import annotations

from pathlib import Path

from leverwatch import serve_file
from leverwatch.connection import ConnectError, Connection
from leverwatch.remote import Remote


def connect(where: str | Path, *, create: bool = False) -> Connection:
    """A connection to a data folder, through its server where one runs, or to a server's address.

    Raises:
        ConnectError: the folder is not there (and `create` is not asked).
    """
    if isinstance(where, str) and where.startswith(("http://", "https://")):
        return Remote(where)
    folder = Path(where).absolute()
    running = serve_file.live(folder)
    if running:
        return Remote(running.url, running.otlp_http)
    if not create and not (folder / "live.duckdb").exists():
        msg = f"{folder}: no data here; start `leverwatch serve` or `leverwatch load` with this folder first"
        raise ConnectError(msg)
    from leverwatch.local import Local  # here, since it loads the decoder and the jobs: asking a server needs neither

    return Local.open(folder)
