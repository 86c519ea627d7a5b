"""Words of a command line in, its arguments out; what a command does not take is told with that command's own usage."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any


class Parser(argparse.ArgumentParser):
    """A parser that refuses unknown words itself: argparse leaves them to the outermost one, whose usage says nothing of the command."""

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]
        """The arguments, and nothing that is left over. Ends the process with status 2 where something is."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest
