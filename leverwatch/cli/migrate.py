"""`leverwatch migrate`: what a data folder holds into a lake, or what a lake holds into a data folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import msgspec

from leverwatch import config, moving
from leverwatch.cli import common
from leverwatch.config import Config, ConfigError
from leverwatch.store_settings import StoreConfig
from queries.lake import Lake
from queries.lake_files import local_folder


def add(subparsers: Any) -> None:
    """States the command's arguments."""
    parser = subparsers.add_parser("migrate", help="move what a data folder holds into a lake, or back, checked by counts and sums")
    parser.add_argument("--from", dest="source", required=True, metavar="DIR|URI", help="a data folder, or a lake's folder or address")
    parser.add_argument("--to", dest="target", required=True, metavar="DIR|URI", help="the other of the two; made where it is not there")
    parser.add_argument("--config", metavar="FILE", help="leverwatch.toml, for [store.options] (default: the one in the data folder)")
    parser.add_argument("--switch", action="store_true", help="then make the data folder one of a server on the lake; its decisions stay")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Moves, telling each table; it may be run again where it was broken off."""
    source, target = _is_lake(args.source), _is_lake(args.target)
    into_lake = target if target is not None else source is False
    if source is None or source is into_lake:
        msg = f"--from {args.source} --to {args.target}: a data folder and a lake are taken, in either order; one of them has to be there"
        raise ConfigError(msg)
    if args.switch and not into_lake:
        msg = "--switch is of a move into a lake"
        raise ConfigError(msg)
    folder, address = (Path(args.source), args.target) if into_lake else (Path(args.target), args.source)
    read = config.read(Path(args.config) if args.config else None, folder)
    lake = Lake.open(address, read.store.options)
    if into_lake:
        moved = moving.to_lake(folder.absolute(), _embedded(read), lake, _say, is_switch=args.switch)
    else:
        moved = moving.from_lake(lake, folder.absolute(), _embedded(read), _say)
    _say(f"{sum(one.rows for one in moved):,} rows are in {args.target}, as they were in {args.source}")
    return 0


def _is_lake(place: str) -> bool | None:
    """Whether a place is a lake; None where nothing is there yet."""
    folder = local_folder(place)
    if folder is None or any(folder.glob("*/_delta_log")):
        return True
    return False if (folder / "live.duckdb").exists() else None


def _embedded(read: Config) -> Config:
    """The configuration as of a store of one's own."""
    kept = StoreConfig(memory_limit=read.store.memory_limit, keep_content=read.store.keep_content)
    return msgspec.structs.replace(read, store=kept)


def _say(sentence: str) -> None:
    common.say([sentence])
