"""`leverwatch demo`: a simulated fleet, a server and a webhook receiver on this machine, and what comes of it."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64encode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from demo import play, scenarios, sink

STARTED_S = 60.0
STOPPED_S = 20.0


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    parser = subparsers.add_parser("demo", help="a small simulated fleet on this machine: spans, a segment that stops paying, a webhook")
    parser.add_argument("--scenario", default="batch-grows", help="which scenario to play (--list names them)")
    parser.add_argument("--list", action="store_true", help="list the scenarios and stop")
    parser.add_argument("--speed", type=float, default=1.0, help="how much faster than life to go on after the history (default 1)")
    parser.add_argument("--port", type=int, default=8080, help="the pages' port (default 8080; 0 takes a free one)")
    parser.add_argument("--data", metavar="DIR", help="keep the data in this folder (default: a temporary one)")
    parser.add_argument("--seed", type=int, default=1, help="the traffic's seed")
    parser.add_argument("--for", dest="for_s", type=float, metavar="SECONDS", help="stop by itself after so long")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Plays a scenario until it is stopped."""
    if args.list:
        for name in scenarios.names():
            _say(f"{name:<14} {scenarios.load(name).what}")
        return 0
    scenario = scenarios.load(args.scenario)
    with tempfile.TemporaryDirectory(prefix="leverwatch-demo-") as temporary:
        folder = Path(args.data or temporary).absolute()
        secret = "whsec_" + b64encode(secrets.token_bytes(24)).decode()
        with sink.Sink(secret, _say) as receiver:
            server, addresses = _start(folder, args.port, receiver.url, secret)
            try:
                return _play(args, scenario, addresses)
            finally:
                _stop(server)


def _play(args: argparse.Namespace, scenario: Any, addresses: dict[str, str]) -> int:
    _say(f"\n  the page is at  {addresses['url']}/\n")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if args.for_s:
        ender = threading.Timer(args.for_s, stop.set)
        ender.daemon = True
        ender.start()
    play.play(
        scenario, addresses["otlp_grpc"], now=datetime.now(UTC), seed=args.seed, say=_say, stop=stop, speed=args.speed, clock=time.monotonic
    )
    return 0


def _start(folder: Path, port: int, hook: str, secret: str) -> tuple[subprocess.Popen[str], dict[str, str]]:
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "demo.toml"
    config.write_text(f'[[receivers]]\nname = "demo"\nkind = "webhook"\nurl = "{hook}"\nsecret = "{secret}"\n', encoding="utf-8")
    config.chmod(0o600)
    command = [sys.executable, "-m", "leverwatch.cli.main", "serve", "--data", str(folder), "--config", str(config), "--format", "json"]
    command += ["--with-parent"]
    command += ["--port", str(port), "--grpc-port", "0", "--otlp-http-port", "0"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LEVERWATCH_")}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)  # noqa: S603
    line = server.stdout.readline() if server.stdout else ""
    if not line:
        msg = f"the server did not start (status {server.wait(STARTED_S)})"
        raise OSError(msg)
    return server, json.loads(line)


def _stop(server: subprocess.Popen[str]) -> None:
    server.terminate()
    try:
        server.wait(STOPPED_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _say(text: str) -> None:
    print(text, flush=True)
