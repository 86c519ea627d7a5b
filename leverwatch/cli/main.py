"""The console script: arguments in, one command run, its exit status out. Errors are one line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from leverwatch.cli import common, demo, load, policy, report, serve, sql
from leverwatch.version import __version__

COMMANDS = (serve, demo, load, report, sql, policy)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command: 0 done, 1 the answer is no, 2 wrong use or input, 3 cannot tell."""
    parser = argparse.ArgumentParser(prog="leverwatch", description="Says, per traffic segment, whether each lever of an LLM server pays.")
    parser.add_argument("--version", action="version", version=f"leverwatch {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(subparsers)
    args = parser.parse_args(argv)
    try:
        status: int = args.run(args)
        sys.stdout.flush()
    except common.USE_ERRORS as error:
        print(f"leverwatch: {common.one_line(error)}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return status


if __name__ == "__main__":
    sys.exit(main())
