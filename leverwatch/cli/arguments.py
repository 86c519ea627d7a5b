"""Words of a command line in, its arguments out; what a command does not take is told with that command's own usage."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any


class _Commands(argparse._SubParsersAction):  # type: ignore[type-arg]
    """Commands, or verbs of one: the `--help` of each begins with what the list of all says of it, as a sentence."""

    def add_parser(self, name: str, **given: Any) -> Any:
        """The parser of one; where no `description` is given, its `help` is that."""
        told = str(given.get("description") or given["help"]).rstrip()
        return super().add_parser(name, **{**given, "description": f"{told[:1].upper()}{told[1:]}{'' if told.endswith('.') else '.'}"})


class Parser(argparse.ArgumentParser):
    """A parser that refuses unknown words itself: argparse leaves them to the outermost one, whose usage says nothing of the command."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.register("action", "parsers", _Commands)

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]
        """The arguments, and nothing that is left over. Ends the process with status 2 where something is."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest
