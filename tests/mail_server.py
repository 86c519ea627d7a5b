"""A mail server on loopback for tests: says what it is told to say, and keeps what it is given."""

from __future__ import annotations

import email.policy
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from email.parser import BytesParser
from typing import Any


class MailServer:
    """What was mailed, and what is answered: by the first word of a command, or by the whole of it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.answers: dict[str, str] = {}
        self.mails: list[EmailMessage] = []
        self.said: list[str] = []

    def answer(self, line: str) -> str:
        """What is answered to a command."""
        word = line.split(" ")[0].upper()
        usual = {"EHLO": "250-here\r\n250-STARTTLS\r\n250 AUTH PLAIN", "AUTH": "235 in", "DATA": "354 go on", "STARTTLS": "220 go on"}
        return self.answers.get(line) or self.answers.get(word) or usual.get(word, "250 fine")


class Session(socketserver.StreamRequestHandler):
    """One conversation: line by line, until the mail server hangs up."""

    server: _Serving

    def handle(self) -> None:
        if self.server.tls_at_once and not self.secure():
            return
        self.say("220 here")
        while line := self.rfile.readline().decode().rstrip("\r\n"):
            if not self.heard(line):
                return

    def heard(self, line: str) -> bool:
        """Answers a command; gives whether the conversation goes on."""
        kept = self.server.kept
        kept.said.append(line)
        answer = kept.answer(line)
        if answer == "hang up":
            return False
        self.say(answer)
        if line == "data" and answer.startswith("354"):
            self.take()
        return self.secure() if line == "STARTTLS" else line != "quit"

    def take(self) -> None:
        """Takes a mail up to the line with a dot."""
        lines = iter(self.rfile.readline, b".\r\n")
        text = b"".join(line.removeprefix(b".") for line in lines)
        self.server.kept.mails.append(BytesParser(policy=email.policy.default).parsebytes(text))
        self.say(self.server.kept.answers.get("taken", "250 taken"))

    def secure(self) -> bool:
        """Goes on in secret; gives whether the client wanted that."""
        assert self.server.context is not None
        try:
            self.request = self.server.context.wrap_socket(self.request, server_side=True)
        except (ssl.SSLError, ConnectionError):
            return False
        self.setup()
        return True

    def say(self, text: str) -> None:
        """Says a line."""
        self.wfile.write(f"{text}\r\n".encode())

    def finish(self) -> None:
        """Hangs up, also on a client that did so already."""
        with suppress(OSError):
            super().finish()
        self.request.close()


class _Serving(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, context: ssl.SSLContext | None, *, tls_at_once: bool) -> None:
        super().__init__(("127.0.0.1", 0), Session)
        address: Any = self.server_address
        self.kept, self.context, self.tls_at_once = MailServer(address[1]), context, tls_at_once


@contextmanager
def serving(context: ssl.SSLContext | None = None, *, tls_at_once: bool = False) -> Iterator[MailServer]:
    """A mail server on a free port; with a context it can be spoken to in secret."""
    server = _Serving(context, tls_at_once=tls_at_once)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.kept
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
