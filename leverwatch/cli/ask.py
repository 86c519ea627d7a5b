"""`leverwatch ask`: a question by its name, one that ships with us or one that somebody saved."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import Any

from leverwatch.cli import common, sql
from leverwatch.connection import Connection
from queries import question_values, saved_questions
from queries.printable import printable
from queries.question_values import ParameterError
from queries.questions import Question, investigations
from queries.results import FORMATS


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    told = "a question by its name: why the cache missed, hot replicas, flips and how long they stood, and some twenty more"
    parser = subparsers.add_parser("ask", help=told)
    common.add_data(parser)
    parser.add_argument("name", nargs="?", help="as --list names it")
    parser.add_argument("--list", action="store_true", help="name every question, with what it answers and its parameters, and stop")
    parser.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help="a parameter, such as since=7d; repeatable")
    common.add_format(parser, *FORMATS)
    parser.add_argument("--limit", type=int, metavar="ROWS", help="at most so many rows (default: 10,000)")
    common.add_out(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints or writes the answer, or the questions that there are. Raises ParameterError, UnknownInvestigationError."""
    if not args.list and not args.name:
        msg = "name a question, or --list them"
        raise ParameterError(msg)
    with common.connection(args) as connection:
        asked = _Asked(connection)
        if args.list:
            known = (*investigations(), *saved_questions.listed(asked))
            print(printable("\n".join(line for question in known for line in _lines(question))))
            return 0
        found = saved_questions.find(asked, args.name)
        values = question_values.values(found.parameters, _given(args.param), datetime.now(UTC))
        answer = connection.ask(found.sql, values, args.limit)
    return sql.show(answer, args.format, args.out, is_rounded=True)


class _Asked:
    """A connection that answers our own statements."""

    def __init__(self, connection: Connection) -> None:
        self.frame = connection.sql


def _given(texts: list[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            msg = f"--param {text!r}: NAME=VALUE is taken"
            raise ParameterError(msg)
        pairs[name.strip().removeprefix("$")] = value
    return pairs


def _lines(question: Question) -> list[str]:
    told = ", ".join(f"{one.name}={one.default if one.default is not None else ''}" for one in question.parameters)
    return [f"{question.name}: {question.title}", f"    {question.answers}", *([f"    {told}"] if told else [])]
