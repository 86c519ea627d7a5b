"""The web server's line about a call that is no HTTP in, the same with where gRPC and TLS are taken out."""

from __future__ import annotations

import logging

LOGGER = "uvicorn.error"
SAID = "Invalid HTTP request received."


class Hint(logging.Filter):
    """Says beside that line what such a call mostly was meant to be."""

    def __init__(self, grpc_port: int, *, is_tls: bool) -> None:
        super().__init__()
        spoken = "HTTP within TLS" if is_tls else "HTTP without TLS"
        self._hint = f"the ports of the pages and of OTLP over HTTP speak {spoken}; OTLP over gRPC is taken on port {grpc_port}"

    def filter(self, record: logging.LogRecord) -> bool:
        """Keeps every line."""
        if record.msg == SAID:
            record.msg = f"{SAID} {self._hint}"
        return True
