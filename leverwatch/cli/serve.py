"""`leverwatch serve`: everything in one process."""

from __future__ import annotations

import argparse
import ctypes
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec

from leverwatch import config
from leverwatch.cli import common
from leverwatch.observe import logs
from leverwatch.serve_file import Addresses
from leverwatch.serving import serve


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    parser = subparsers.add_parser("serve", help="receive, compute, judge, deliver and show, in one process")
    parser.add_argument("--data", metavar="DIR", help="the data folder (default: $LEVERWATCH_DATA, else ./leverwatch-data)")
    parser.add_argument("--config", metavar="FILE", help="leverwatch.toml (default: the one in the data folder)")
    parser.add_argument("--host", metavar="HOST", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--grpc-port", type=int, metavar="PORT", help="OTLP over gRPC (default: 4317; 0 takes a free one)")
    parser.add_argument("--otlp-http-port", type=int, metavar="PORT", help="OTLP over HTTP (default: 4318)")
    parser.add_argument("--port", type=int, metavar="PORT", help="pages and API (default: 8080)")
    common.add_format(parser, "text", "json", told="how the addresses are printed")
    parser.add_argument("--with-parent", action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serves until it is told to stop."""
    if args.with_parent:
        _end_with_parent()
    folder = common.folder(args)
    read = config.read(Path(args.config) if args.config else None, folder)
    logs.set_up(read.observe)
    asked = {key: getattr(args, key) for key in ("host", "grpc_port", "otlp_http_port", "port") if getattr(args, key) is not None}
    read = msgspec.structs.replace(read, serve=msgspec.structs.replace(read.serve, **asked))

    def announce(addresses: Addresses) -> None:
        if args.format == "json":
            sys.stdout.write(msgspec.json.encode(addresses).decode() + "\n")
        else:
            every = " (every address of this machine)" if read.serve.host in ("0.0.0.0", "::", "") else ""  # noqa: S104 - only compared
            sys.stdout.write(
                f"pages      {addresses.url}{every}\nOTLP/gRPC  {addresses.otlp_grpc}\nOTLP/HTTP  {addresses.otlp_http}/v1/traces\n"
            )
        sys.stdout.flush()

    serve(folder, read, announce)
    return 0


def _end_with_parent() -> None:
    """Asks Linux for SIGTERM when the process that started this one ends, however it ends. Elsewhere it does nothing."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGTERM)
