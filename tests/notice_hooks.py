"""Receivers on loopback that misbehave as they are told, and keep what they got."""

from __future__ import annotations

import os
import signal
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self

SLOW_S = 1.2
BROKEN = {"slow": b"", "close": b"", "kill": b"", "cut": b"HTTP/1.1 2", "cut body": b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"}


class Got(NamedTuple):
    """One post: under which id, what, and how it was answered."""

    webhook_id: str
    body: str
    answered: str


class Hooks:
    """One server; each path is a receiver, with answers of its own.

    An answer is a status such as `500` or `429 retry-after=120`, or a word: `slow` answers after the client has gone, `close` and `cut`
    hang up before and within the status line, `cut body` within the body, `kill` ends the process that asks. The last answer stays.
    """

    def __init__(self, port: int = 0) -> None:
        self.answers: dict[str, list[str]] = defaultdict(lambda: ["204"])
        self.got: dict[str, list[Got]] = defaultdict(list)
        self.ended = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _answering(self))
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.ended.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}"

    def accepted(self, name: str) -> list[str]:
        """The ids that a receiver acknowledged, in order."""
        return [one.webhook_id for one in self.got[name] if one.answered in ("204", "cut body")]


def _answering(hooks: Hooks) -> type[BaseHTTPRequestHandler]:
    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            name, body = self.path.strip("/"), self.rfile.read(int(self.headers["content-length"])).decode()
            answers = hooks.answers[name]
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            hooks.got[name].append(Got(self.headers["webhook-id"], body, answer))
            self.close_connection = True
            self.wfile.write(_bytes(answer))
            if answer == "slow":
                hooks.ended.wait(SLOW_S)
            if answer == "kill":
                os.kill(int(self.headers["x-process"]), signal.SIGKILL)

        def log_message(self, *_: Any) -> None:
            pass

    return Answering


def _bytes(answer: str) -> bytes:
    if answer in BROKEN:
        return BROKEN[answer]
    status, *headers = answer.split()
    lines = [f"HTTP/1.1 {status} so", *(header.replace("=", ": ") for header in headers), "content-length: 0", "", ""]
    return "\r\n".join(lines).encode()
