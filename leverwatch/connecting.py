"""`leverwatch.connect`: a folder or a server's address in, a connection out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from leverwatch import serve_file
from leverwatch.connection import ConnectError, Connection
from leverwatch.credentials import credentials
from leverwatch.remote import Remote


def connect(
    where: str | Path,
    *,
    create: bool = False,
    token: str | None = None,
    token_file: str | Path | None = None,
    ca_file: str | Path | None = None,
) -> Connection:
    """A connection to a data folder, through its server where one runs, or to a server's address.

    A server that asks for a token is shown the given one, else, through the folder, the secret of its run, else `$LEVERWATCH_TOKEN`.

    Raises:
        ConnectError: the folder is not there (and `create` is not asked), or a token or certificate file cannot be used.
    """
    shown = credentials(token, token_file, ca_file)
    if isinstance(where, str) and where.startswith(("http://", "https://")):
        return Remote(where, credentials=shown)
    folder = Path(where).absolute()
    running = serve_file.live(folder)
    if running:
        local = serve_file.local_access(folder)
        if token is None and token_file is None and local.token:
            shown = replace(shown, token=local.token)
        return Remote(running.url, running.otlp_http, replace(shown, pinned=local.cert_file))
    if not create and not (folder / "live.duckdb").exists():
        msg = f"{folder}: no data here; start `leverwatch serve` or `leverwatch load` with this folder first"
        raise ConnectError(msg)
    from leverwatch.local import Local  # here, since it loads the decoder and the jobs: asking a server needs neither

    return Local.open(folder)
