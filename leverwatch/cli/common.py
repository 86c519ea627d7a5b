"""What several commands share: the data they work on, frames as text."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import polars as pl

from leverwatch.connecting import connect
from leverwatch.connection import ConnectError, Connection
from queries.printable import printable


def add_data(parser: argparse.ArgumentParser) -> None:
    """`--data` and `--url`: which store a command works on."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--data", metavar="DIR", help="the data folder (default: $LEVERWATCH_DATA, else ./leverwatch-data)")
    group.add_argument("--url", metavar="URL", help="a running server, such as http://127.0.0.1:8080")
    parser.add_argument("--token-file", metavar="FILE", help="a file with the token that the server asks for (default: $LEVERWATCH_TOKEN)")
    parser.add_argument("--ca-file", metavar="FILE", help="the authority of the server's certificate, PEM (default: $LEVERWATCH_CA_FILE)")


def add_period(parser: argparse.ArgumentParser, since: str, until: str = "") -> None:
    """`--since` and `--until`: what of the stored time is asked for; the words say what they are where they are left out."""
    parser.add_argument("--since", metavar="T", help=f"ISO 8601 (no offset: UTC) or an age such as 90m, 24h, 7d (default: {since})")
    parser.add_argument("--until", metavar="T", help="exclusive, as --since" + (f" (default: {until})" if until else ""))


def add_format(parser: argparse.ArgumentParser, *forms: str, told: str = "how the answer is written") -> None:
    """`--format`, of which the first form is the default."""
    parser.add_argument("--format", choices=forms, default=forms[0], help=f"{told} (default: {forms[0]})")


def add_out(parser: argparse.ArgumentParser) -> None:
    """`--out`: where the answer goes."""
    parser.add_argument("--out", metavar="FILE", help="write there instead of to standard output")


def folder(args: argparse.Namespace) -> Path:
    """The data folder that a command names."""
    return Path(args.data or os.environ.get("LEVERWATCH_DATA") or "leverwatch-data").absolute()


def connection(args: argparse.Namespace, *, create: bool = False) -> Connection:
    """A connection to what a command names: through its server where one runs."""
    if args.url and not args.url.startswith(("http://", "https://")):
        msg = f"--url {args.url!r}: an address that begins with http:// or https:// is taken"
        raise ConnectError(msg)
    shown = {"token_file": args.token_file, "ca_file": args.ca_file}
    return connect(args.url, **shown) if args.url else connect(folder(args), create=create, **shown)


def say(sentences: Iterable[str]) -> None:
    """Sentences on standard error, so that what is piped is the answer alone."""
    for sentence in sentences:
        print(f"leverwatch: {printable(sentence)}", file=sys.stderr)


def write(frame: pl.DataFrame, fmt: str, out: str | None) -> str | None:
    """A frame in a format: written to `out`, else given back as text. Parquet needs `out`."""
    if fmt == "parquet":
        if not out:
            msg = "--format parquet needs --out FILE"
            raise OSError(msg)
        frame.write_parquet(out)
        return None
    written: dict[str, Callable[[pl.DataFrame], str]] = {"table": _table, "json": _json, "csv": _csv}
    return put(written[fmt](frame), out)


def put(text: str, out: str | None) -> str | None:
    """A text written to `out`; without one it is given back."""
    if out:
        Path(out).write_text(text, encoding="utf-8")
        return None
    return text


def _table(frame: pl.DataFrame) -> str:
    with pl.Config(
        tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True, fmt_str_lengths=80, tbl_width_chars=-1
    ):
        return printable(f"{frame}\n")


def _csv(frame: pl.DataFrame) -> str:
    """A list is its JSON text: CSV has no lists."""
    lists = [
        pl.Series(name, [None if value is None else json.dumps(value) for value in frame[name].to_list()], pl.String)
        for name, kind in frame.schema.items()
        if isinstance(kind, pl.List)
    ]
    return frame.with_columns(lists).write_csv()


def _json(frame: pl.DataFrame) -> str:
    return frame.write_json() + "\n"
