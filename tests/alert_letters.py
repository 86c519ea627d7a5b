"""For tests of receivers: letters as judging gives them, a clock that stands, receivers on loopback that keep what they get."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import notice_rows
import polars as pl
from notice_rows import SECRET as SECRET
from notice_rows import put_in as put_in

from alerts import deliver, payload
from alerts.channels import Letter, Route
from alerts.payload import Message
from alerts.receivers import Receiver
from queries.store import Store

NOW = datetime(2026, 3, 4, 3, 0, tzinfo=UTC)
SEGMENT = {"model": "llama-70b", "hardware": "H200"}
LINKS = {"page": "http://leverwatch.example/segment?model=llama-70b", "flip": "http://leverwatch.example/api/flips?flip_id=f1"}


class Clock(notice_rows.Clock):
    """A clock that stands, at NOW, until it is moved."""

    def __init__(self, now: datetime = NOW) -> None:
        super().__init__(now)


def data(**changes: Any) -> dict[str, Any]:
    """The `data` of a notice that advises to disable speculation."""
    return {
        "flip_id": "f1",
        "policy": "speculation",
        "policy_version": "3",
        "lever": "speculation",
        "segment": SEGMENT,
        "verdict": "disable",
        "action": "disable",
        "severity": "critical",
        "state_before": "on",
        "state_after": "off_recommended",
        "decided_at": "2026-03-04T02:55:00Z",
        "expires_at": "2026-03-05T02:55:00Z",
        "reason": "net ITL 31 ms against 27 ms in control, gain -15 % (-22..-9 %), 41 blocks",
        "rollback": {"steps": ["Restart without a draft model"]},
        "commands": [{"engine": "vllm", "text": "--speculative-config null"}],
        "links": LINKS,
        **changes,
    }


def letter(
    kind: str = "lever.disable", webhook_id: str = "msg_1", at: datetime = NOW, opened: Message | None = None, **changes: Any
) -> Letter:
    """A letter of a type, its data changed as given."""
    message = Message(kind, at, data(**changes))  # type: ignore[arg-type]
    return Letter(webhook_id, message, payload.text(message), opened)


def route(receiver: Receiver, secret: str, client: httpx.Client) -> Route:
    """A route with a seeded generator."""
    return notice_rows.route(receiver, secret=secret, client=client)


def flip(store: Store, at: datetime, flip_id: str = "f1", **changes: Any) -> None:
    """Stores a flip that advises to disable, and its stream as judging left it; both changed as given."""
    told = data(flip_id=flip_id, decided_at=at.isoformat(), **changes)
    row = {name: told[name] for name in ("flip_id", "policy", "lever", "state_before", "state_after", "reason", "action", "severity")}
    segment = json.dumps(told["segment"], sort_keys=True, separators=(",", ":"))
    notice_rows.insert(store, "flips", row | {"segment": segment, "decided_at": at, "shadow": False, "notice": json.dumps(told)})
    with store.write() as transaction:
        transaction.execute(
            "insert into policies (policy, version, lever, owner, body, loaded_at) select $policy, '3', $lever, 'o', '', $at"
            " where not exists (from policies where policy = $policy)",
            {"policy": told["policy"], "lever": told["lever"], "at": at},
        )
    stands(store, told["state_after"], told["verdict"], told["reason"], segment)


def stands(store: Store, state: str, verdict: str, reason: str, segment: str) -> None:
    """Stores what judging says now of a segment's stream."""
    row = {
        "policy": "speculation",
        "policy_version": "3",
        "lever": "speculation",
        "segment": segment,
        "verdict": verdict,
        "action": "disable",
    }
    times = dict.fromkeys(("decided_at", "block_ended_at", "state_since"), NOW)
    with store.write() as transaction:
        transaction.execute("delete from current_verdicts where segment = $segment", {"segment": segment})
        values = row | times | {"reason_code": "harm", "reason": reason, "state": state, "streak": 1}
        transaction.insert("current_verdicts", pl.DataFrame([values]))


class Hook:
    """An HTTP receiver: answers as told, one answer a request, the last one for good; keeps what it got."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.answers: list[tuple[int, dict[str, str], str]] = [(200, {}, "ok")]
        self.got: list[tuple[str, dict[str, str], str]] = []

    @property
    def bodies(self) -> list[Any]:
        """What came, read as JSON."""
        return [json.loads(body) for _, _, body in self.got]


@contextmanager
def hook() -> Iterator[Hook]:
    """An HTTP receiver on a free port of loopback."""
    kept: list[Hook] = []

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            hook, text = kept[0], self.rfile.read(int(self.headers["content-length"])).decode()
            hook.got.append((self.path, {name.lower(): value for name, value in self.headers.items()}, text))
            status, headers, said = hook.answers.pop(0) if len(hook.answers) > 1 else hook.answers[0]
            self.send_response(status)
            for name, value in (*headers.items(), ("content-length", str(len(said)))):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    kept.append(Hook(server.server_port))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield kept[0]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def client() -> Iterator[httpx.Client]:
    """The HTTP client that couriers use."""
    with deliver.client() as opened:
        yield opened
