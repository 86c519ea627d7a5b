"""The console script: arguments in, one command run, its exit status out. Errors are one line."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Sequence

from leverwatch.cli.arguments import Parser
from leverwatch.version import __version__
from queries.printable import printable

COMMANDS = (
    "serve",
    "demo",
    "load",
    "report",
    "effects",
    "holdout",
    "debt",
    "explain",
    "sql",
    "ask",
    "policy",
    "verify",
    "doctor",
    "calibrate",
    "snapshot",
    "mcp",
    "switchback",
    "silence",
    "deliveries",
    "tap",
    "collect",
    "migrate",
    "work",
)
OURS = ("alerts", "collectors", "dashboards", "demo", "leverwatch", "pipeline", "queries")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command: 0 done, 1 the answer is no, 2 wrong use or input, 3 cannot tell."""
    words = list(sys.argv[1:] if argv is None else argv)
    # Only the command that is asked for is imported: a question to a running server needs no decoder and no jobs.
    args = parser(words[:1] if words and words[0] in COMMANDS else COMMANDS).parse_args(words)
    try:
        status: int = args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if not _is_told(error):
            raise
        _tell(error)
        return 2
    return status


def _tell(error: Exception) -> None:
    """Says an error in one line: of JSON where the process logs so, which a command that runs no server never does."""
    logs = sys.modules.get("leverwatch.observe.logs")
    if logs is not None and logs.is_json():
        logging.getLogger("leverwatch").critical(_one_line(error))
    else:
        print(f"leverwatch: {_one_line(error)}", file=sys.stderr)


def parser(names: Sequence[str] = COMMANDS) -> Parser:
    """What takes the words of a command line, for these commands."""
    made = Parser(prog="leverwatch", description="Says, per traffic segment, whether each lever of an LLM server pays.")
    made.add_argument("--version", action="version", version=f"leverwatch {__version__}")
    subparsers = made.add_subparsers(required=True, metavar="COMMAND")
    for name in names:
        importlib.import_module(f"leverwatch.cli.{name}").add(subparsers)
    return made


def _is_told(error: Exception) -> bool:
    """Whether an error is one that our code raises to be read, or the operating system's word on a file or address."""
    return isinstance(error, OSError) or type(error).__module__.split(".")[0] in OURS


def _one_line(error: Exception) -> str:
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    hint = str(getattr(error, "hint", "") or "")
    told = " ".join(text.split()) or type(error).__name__
    return printable(f"{told}; {' '.join(hint.split())}" if hint and hint not in told else told)


if __name__ == "__main__":
    sys.exit(main())
