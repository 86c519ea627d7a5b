"""A way to connect in, an MCP server over standard input and output out, with the questions of `mcp_tools`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

from leverwatch.mcp_tools import INSTRUCTIONS, Connect, tools
from leverwatch.version import __version__

READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def server(connect: Connect) -> MCPServer:
    """The server, to be run; each tool only reads."""
    made = MCPServer("leverwatch", instructions=INSTRUCTIONS, version=__version__, log_level="ERROR")
    for tool in tools(connect):
        made.add_tool(_told(tool), annotations=READS)
    return made


def _told(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """The same, and what it refuses is told to the client in one sentence."""

    @functools.wraps(tool)
    def asked(**arguments: Any) -> dict[str, Any]:
        try:
            return tool(**arguments)
        except (LookupError, OSError, RuntimeError, ValueError) as error:
            text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
            hint = getattr(error, "hint", "")
            raise ToolError(f"{text}; {hint}" if hint else text) from error

    return asked
