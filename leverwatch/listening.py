"""Addresses to listen on in, bound sockets and the servers that answer on them out: what `serve` and `collect` share."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI

import collectors.api
from collectors.door import Door
from leverwatch import tls
from leverwatch.access_settings import Port
from leverwatch.observe import logs


class ServeError(RuntimeError):
    """The server cannot start, or cannot go on; says what is in the way."""


class Uvicorn(uvicorn.Server):
    """A uvicorn server that leaves signals to us and serves sockets that are bound already."""

    def __init__(self, application: Any, certificates: tls.Certificates | None, port: Port) -> None:
        settings: dict[str, Any] = {"log_level": "warning", "access_log": False, "lifespan": "off", "timeout_graceful_shutdown": 2}
        if logs.is_json():
            settings["log_config"] = None  # else it prints by itself
        if certificates:
            settings["ssl_context_factory"] = lambda *_: certificates.context(port)
        super().__init__(uvicorn.Config(application, **settings))

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves the signals as they are."""
        yield


def otlp_app(door: Door, web_port: int) -> FastAPI:
    """What answers on the port of OTLP over HTTP."""
    application = FastAPI(title="Leverwatch OTLP", docs_url=None, redoc_url=None, openapi_url=None)
    application.include_router(collectors.api.router(door))
    application.include_router(collectors.api.requests_router(door))
    application.include_router(collectors.api.elsewhere_router(web_port))
    return application


def listen(host: str, port: int, option: str) -> socket.socket:
    """A bound socket. Raises ServeError."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=512)
    except (OSError, OverflowError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        msg = f"cannot listen on {host}:{port}: {reason}; {option} takes another port, 0 a free one"
        raise ServeError(msg) from error


def address(host: str, port: int) -> str:
    """Host and port as one text."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def port_of(bound: socket.socket) -> int:
    """The port that a socket is bound to."""
    port: int = bound.getsockname()[1]
    return port
