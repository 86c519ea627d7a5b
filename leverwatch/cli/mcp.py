"""`leverwatch mcp`: the read-only questions as tools for an MCP client, over standard input and output."""

from __future__ import annotations

import argparse
import functools
from typing import Any

from leverwatch.cli import common


class McpMissingError(ModuleNotFoundError):
    """The MCP SDK is not installed; says how it is."""


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    parser = subparsers.add_parser("mcp", help="serve read-only questions to an MCP client over standard input and output")
    common.add_data(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Answers until the client hangs up. The store is opened for each question, so that a folder stays free between them."""
    try:
        from leverwatch.mcp_server import server
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("leverwatch"):
            raise
        msg = "the MCP SDK is not installed: pip install 'leverwatch[mcp]'"
        raise McpMissingError(msg) from error
    with common.connection(args):  # so that a wrong address or folder is said here, and not at the first question
        pass
    server(functools.partial(common.connection, args)).run("stdio")
    return 0
