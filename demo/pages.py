"""The replicas' pages of metrics on loopback: `/<replica>/metrics`, Prometheus text, as of when each was last looked at."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Pages:
    """Serves at `url(replica)` from the start of its `with` block to its end; 503 until there is something to show."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _answering(self._texts))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="pages", daemon=True)

    def url(self, replica: str) -> str:
        """Where a replica's page is."""
        return f"http://127.0.0.1:{self._server.server_port}/{replica}/metrics"

    def show(self, texts: Mapping[str, str]) -> None:
        """Shows these pages from now on."""
        self._texts.update(texts)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _answering(texts: Mapping[str, str]) -> type[BaseHTTPRequestHandler]:
    class Get(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:  # the name that http.server looks for
            replica, _, rest = self.path.lstrip("/").partition("/")
            if rest != "metrics":
                self._answer(HTTPStatus.NOT_FOUND, b"")
            elif replica not in texts:
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, b"")
            else:
                self._answer(HTTPStatus.OK, texts[replica].encode())

        def _answer(self, status: HTTPStatus, content: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", TEXT)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  # the name that http.server gives it
            pass

    return Get
