"""An S3-compatible server, moto's, in a process of its own: in a test's its threads would wait for the lock that a caller holds."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

SERVER = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


@contextmanager
def bucket(name: str) -> Iterator[dict[str, str]]:
    """A server with an empty bucket; gives what a lake in it takes as its options."""
    process = subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        endpoint = f"http://127.0.0.1:{int(process.stdout.readline())}"
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{name}", method="PUT"), timeout=10).close()
        access = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
        yield {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true", **access}
    finally:
        process.communicate(timeout=20)
