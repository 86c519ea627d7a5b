"""`leverwatch demo`: a simulated fleet, a server and a webhook receiver on this machine, and what comes of it."""

from __future__ import annotations

import argparse
import secrets
import signal
import sys
import tempfile
import threading
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from alerts import policy
from demo import pages, play, recording, scenarios, sink, telling
from demo.traffic import traces
from leverwatch.cli import demo_server
from queries.printable import printable

HISTORY_HOURS = 20.0
TRACE_HISTORY_HOURS = 2.0
LIMIT_SHOWN = 5


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    parser = subparsers.add_parser("demo", help="a small simulated fleet on this machine: spans, a segment that stops paying, a webhook")
    parser.add_argument(
        "--scenario", default="batch-grows", metavar="NAME", help="which scenario to play (default: batch-grows; --list names them)"
    )
    parser.add_argument("--trace", metavar="FILE", help="drive a fleet with a public trace instead, over and over: Mooncake's or Azure's")
    parser.add_argument("--out", metavar="DIR", help="write what the fleet would send and answer to files in this folder, and stop")
    parser.add_argument("--list", action="store_true", help="list the scenarios, with what is true of each, and stop")
    speed = "how much faster than life to go on after the history, up to 1000 (default: 1)"
    parser.add_argument("--speed", type=_number(float, 0.01, 1000), default=1.0, metavar="X", help=speed)
    parser.add_argument("--port", type=int, default=8080, metavar="PORT", help="the pages' port (default: 8080; 0 takes a free one)")
    parser.add_argument("--data", metavar="DIR", help="keep the data in this folder (default: a temporary one)")
    parser.add_argument("--seed", type=_number(int, 0, 2**63 - 1), default=1, metavar="N", help="the traffic's seed (default: 1)")
    parser.add_argument("--for", dest="for_s", type=_number(float, 0.1, 3e6), metavar="SECONDS", help="stop by itself after so long")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Plays a scenario until it is stopped."""
    if args.list:
        _say("\n".join(line for name in scenarios.names() for line in telling.listed(scenarios.load(name))))
        return 0
    plan = _plan(args, datetime.now(UTC))
    if args.out:
        recording.record(plan, Path(args.out), _say)
        _say("\n".join(telling.recorded(plan.scenario, Path(args.out), plan.began)))
        return 0
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with tempfile.TemporaryDirectory(prefix="leverwatch-demo-") as temporary, pages.Pages() as shown:
        folder = Path(args.data or temporary).absolute()
        secret = "whsec_" + b64encode(secrets.token_bytes(24)).decode()
        with sink.Sink(secret, _say) as receiver:
            scrapes = {name: shown.url(name) for name in play.replicas(plan.scenario)}
            server = demo_server.started(folder, args.port, _config(receiver.url, secret, scrapes))
            try:
                played = _play(args, plan, demo_server.addresses(server), shown, stop)
            finally:
                demo_server.stop(server, folder, _say)
    if played and (said := telling.cut_short(plan, played, args.for_s)):
        _say(said)
    return 0


def _number(kind: type[int] | type[float], least: float, most: float) -> Callable[[str], float]:
    """Reads a number of an argument."""

    def read(text: str) -> float:
        value = kind(text)
        if not least <= value <= most:
            msg = f"{text}: a number from {least:g} to {most:g} is taken"
            raise argparse.ArgumentTypeError(msg)
        return value

    read.__name__ = "number"
    return read


def _plan(args: argparse.Namespace, now: datetime) -> play.Plan:
    """What is played: a scenario, or a trace over and over. Raises ScenarioError, TraceError, OSError."""
    if args.trace is None:
        return play.Plan(scenarios.load(args.scenario), HISTORY_HOURS, now, args.seed)
    trace = traces.opened(Path(args.trace))
    for unread in trace.unread[:LIMIT_SHOWN]:
        print(printable(f"leverwatch: not read: {unread}"), file=sys.stderr)
    return play.Plan(trace.fleet, TRACE_HISTORY_HOURS, now, args.seed, trace.again)


def _play(
    args: argparse.Namespace, plan: play.Plan, addresses: dict[str, str], shown: pages.Pages, stop: threading.Event
) -> play.Played | None:
    if stop.is_set():
        return None
    _say("\n".join(telling.where_to_look(plan.scenario, addresses["url"], plan.began)))
    judged = {one.lever for one in policy.shipped()}
    if unjudged := sorted({truth.lever for truth in plan.scenario.truth} - judged):
        _say(f"No policy is shipped for {', '.join(unjudged)} yet: effects are measured and shown, and no webhook will come of them.\n")
    if args.for_s:
        ender = threading.Timer(args.for_s, stop.set)
        ender.daemon = True
        ender.start()
    return play.play(plan, addresses["otlp_grpc"], say=_say, stop=stop, speed=args.speed, show=shown.show)


def _config(hook: str, secret: str, scrapes: dict[str, str]) -> str:
    """The server's configuration: the sink of webhooks, and each replica's page of metrics."""
    receiver = f'[[receivers]]\nname = "demo"\nkind = "webhook"\nurl = "{hook}"\nsecret = "{secret}"\n'
    return receiver + "".join(f'\n[[scrape]]\nurl = "{url}"\nreplica = "{name}"\n' for name, url in scrapes.items())


def _say(text: str) -> None:
    print(printable(text), flush=True)
