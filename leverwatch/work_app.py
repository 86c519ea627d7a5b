"""What a worker of a lake answers where it is given a port: that it lives, and its numbers."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator

from fastapi import FastAPI
from prometheus_client.metrics_core import Metric as Family

from dashboards.security import Headed
from leverwatch import exposure, prometheus_page
from leverwatch.config import Config
from leverwatch.listening import Uvicorn, address, listen, port_of
from leverwatch.locks import Locks
from leverwatch.observe.house_numbers import process_families
from leverwatch.observe.observer import Observer
from leverwatch.version import __version__

STOP_S = 5.0
Families = Callable[[], Iterator[Family]]


def families(observer: Observer) -> Iterator[Family]:
    """The numbers of a worker."""
    yield from observer.work.families()
    yield from process_families("work", observer)


def application(numbers: Families) -> FastAPI:
    """Health and metrics."""
    made = FastAPI(title="Leverwatch worker", version=__version__, docs_url=None, redoc_url=None)
    made.include_router(prometheus_page.page(numbers))

    @made.get("/healthz")
    def healthz() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    return made


class Listening:
    """The port of one worker, behind the tokens and certificates of the configuration, in a thread of its own.

    Raises:
        ServeError: the port is taken.
        AccessError, TlsError, ExposedError: a token or certificate cannot be used, or the port would be open to the network.
    """

    def __init__(self, config: Config, port: int, numbers: Families) -> None:
        where, locks = config.serve, Locks(config, os.environ)
        exposure.check(where, locks.tokens, locks.certificates)
        self._socket = listen(where.host, port, "--metrics-port")
        self._url = f"{'https' if locks.certificates else 'http'}://{address(where.host, port_of(self._socket))}"
        self._server = Uvicorn(Headed(locks.web(application(numbers), where.otlp_http_port)), locks.certificates, "web")
        self._thread = threading.Thread(target=self._serve, name="metrics", daemon=True)

    def start(self) -> str:
        """Begins to answer; gives the address."""
        self._thread.start()
        return self._url

    def stop(self) -> None:
        """Ends."""
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join(STOP_S)
        self._socket.close()

    def _serve(self) -> None:
        asyncio.run(self._server.serve([self._socket]))
