"""`leverwatch collect`: receives exports and writes them into a lake; any number of them beside each other."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec

from leverwatch import config
from leverwatch.cli import common
from leverwatch.collecting import collect
from leverwatch.observe import logs
from leverwatch.serve_file import Addresses

PORTS = ("host", "grpc_port", "otlp_http_port", "port")


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    parser = subparsers.add_parser("collect", help="receive exports and write them into a lake, beside any number of others")
    parser.add_argument("--data", metavar="DIR", help="where leverwatch.toml lies (default: as serve); nothing is written there")
    parser.add_argument("--config", metavar="FILE", help="leverwatch.toml (default: the one in the data folder)")
    parser.add_argument("--host", metavar="HOST", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--grpc-port", type=int, metavar="PORT", help="OTLP over gRPC (default: 4317; 0 takes a free one)")
    parser.add_argument("--otlp-http-port", type=int, metavar="PORT", help="OTLP over HTTP (default: 4318)")
    parser.add_argument("--port", type=int, metavar="PORT", help="health and metrics (default: 8080)")
    common.add_format(parser, "text", "json", told="how the addresses are printed")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Collects until it is told to stop."""
    read = config.read(Path(args.config) if args.config else None, common.folder(args))
    logs.set_up(read.observe)
    asked = {key: getattr(args, key) for key in PORTS if getattr(args, key) is not None}
    read = msgspec.structs.replace(read, serve=msgspec.structs.replace(read.serve, **asked))

    def announce(addresses: Addresses) -> None:
        told = f"lake       {read.store.uri}\nhealth     {addresses.url}/readyz\nOTLP/gRPC  {addresses.otlp_grpc}\n"
        told += f"OTLP/HTTP  {addresses.otlp_http}/v1/traces\n"
        sys.stdout.write(msgspec.json.encode(addresses).decode() + "\n" if args.format == "json" else told)
        sys.stdout.flush()

    collect(read, announce)
    return 0
