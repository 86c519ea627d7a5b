"""A webhook receiver on loopback: Standard Webhooks posts in, a few readable lines a delivery out."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from standardwebhooks import Webhook, WebhookVerificationError

MAX_BODY_BYTES = 1 << 20
PATH = "/hook"


class Sink:
    """Receives at `url` from the start of its `with` block to its end; `secret` is the `whsec_...` that the sender signs with."""

    def __init__(self, secret: str, say: Callable[[str], None], port: int = 0) -> None:
        self._inbox = _Inbox(Webhook(secret), say)
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _answering(self._inbox))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="webhook-sink", daemon=True)

    @property
    def url(self) -> str:
        """Where to send webhooks."""
        return f"http://127.0.0.1:{self._server.server_port}{PATH}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Inbox:
    """What was delivered already, and the decision about what comes now."""

    def __init__(self, webhook: Webhook, say: Callable[[str], None]) -> None:
        self._webhook, self._say = webhook, say
        self._seen: set[str] = set()
        self._one_at_a_time = threading.Lock()

    def deliver(self, headers: Mapping[str, str], body: bytes) -> HTTPStatus:
        """The answer to a delivery, once it has been told."""
        try:
            payload = self._webhook.verify(body, dict(headers))
        except (WebhookVerificationError, ValueError) as error:
            self._say(f"webhook refused: {error}")
            return HTTPStatus.BAD_REQUEST if isinstance(error, json.JSONDecodeError) else HTTPStatus.UNAUTHORIZED
        with self._one_at_a_time:
            webhook_id = headers["webhook-id"]
            repeat = webhook_id in self._seen
            self._seen.add(webhook_id)
            self._say(f"webhook {webhook_id} came again; it counts once" if repeat else summary(payload))
        return HTTPStatus.NO_CONTENT


def summary(payload: Any) -> str:
    """A webhook's payload in a few lines: type, lever and segment; verdict, action and state; the reason."""
    fields = _object(payload)
    data = _object(fields.get("data"))
    keys = " ".join(f"{key}={value}" for key, value in _object(data.get("segment")).items())
    lines = [" ".join(str(part) for part in ("webhook", fields.get("type"), data.get("lever"), keys) if part)]
    decision = [f"{name} {data[name]}" for name in ("verdict", "action") if name in data]
    if "state_after" in data:
        decision.append(f"{data.get('state_before')} -> {data['state_after']}")
    if "decided_at" in data:
        decision.append(f"decided at {data['decided_at']}")
    lines += [f"  {', '.join(decision)}"] if decision else []
    lines += [f"  {data['reason']}"] if "reason" in data else []
    return "\n".join(lines)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _answering(inbox: _Inbox) -> type[BaseHTTPRequestHandler]:
    class Post(BaseHTTPRequestHandler):
        timeout = 10

        def do_POST(self) -> None:  # the name that http.server looks for
            length = self.headers.get("content-length", "")
            if self.path != PATH:
                self._answer(HTTPStatus.NOT_FOUND)
            elif not length.isdecimal():
                self._answer(HTTPStatus.LENGTH_REQUIRED)
            elif int(length) > MAX_BODY_BYTES:
                self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            else:
                headers = {name.lower(): value for name, value in self.headers.items()}
                self._answer(inbox.deliver(headers, self.rfile.read(int(length))))

        def _answer(self, status: HTTPStatus) -> None:
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  # the name that http.server gives it
            pass  # every delivery is told already

    return Post
