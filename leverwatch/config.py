"""`leverwatch.toml` and the environment in, one frozen configuration out. Read once, at start."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from alerts.receivers import Receiver

PREFIX = "LEVERWATCH_"
NOT_KEYS = ("LEVERWATCH_DATA", "LEVERWATCH_REQUIRE_BROWSER")


class ConfigError(ValueError):
    """The configuration cannot be used; names the file or variable, the key, what came and what is taken."""


class Serve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the server listens. Port 0 is a free one."""

    host: str = "127.0.0.1"
    grpc_port: int = 4317
    otlp_http_port: int = 4318
    port: int = 8080


class StoreConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much the store and the spool may hold."""

    memory_limit: str = "2GB"
    limit_backlog_bytes: int = 512 * 1024 * 1024
    keep_content: bool = False


class SqlConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The limits of ad-hoc SQL."""

    limit_rows: int = 10_000
    limit_s: float = 10.0
    limit_bytes: int = 1024 * 1024 * 1024


class Alerts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which policies judge: the shipped ones, and those of a folder of one's own."""

    policies: str = ""
    base_url: str = ""


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that can be set."""

    serve: Serve = Serve()
    store: StoreConfig = StoreConfig()
    sql: SqlConfig = SqlConfig()
    alerts: Alerts = Alerts()
    receivers: tuple[Receiver, ...] = ()


SECTIONS: dict[str, type[msgspec.Struct]] = {"serve": Serve, "store": StoreConfig, "sql": SqlConfig, "alerts": Alerts}


def read(file: Path | None, folder: Path, environment: Mapping[str, str] = os.environ) -> Config:
    """The configuration from `file` (else `leverwatch.toml` in the data folder, if there), the environment over it.

    Raises:
        ConfigError: an unreadable file, an unknown key with the nearest known one, a value of the wrong kind.
    """
    path = file or folder / "leverwatch.toml"
    raw: dict[str, Any] = {}
    if file or path.is_file():
        try:
            raw = msgspec.toml.decode(path.read_bytes())
        except (OSError, msgspec.DecodeError) as error:
            msg = f"{path}: {error}"
            raise ConfigError(msg) from error
    _refuse_unknown(raw, str(path))
    raw = _with_environment(raw, environment)
    try:
        return msgspec.convert(raw, Config, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        msg = f"{path if path.is_file() else 'environment'}: {error}"
        raise ConfigError(msg) from error


def _refuse_unknown(raw: dict[str, Any], where: str) -> None:
    for section, values in raw.items():
        known = [*SECTIONS, "receivers"]
        if section not in known:
            msg = f"{where}: {_unknown(section, known)}"
            raise ConfigError(msg)
        if section in SECTIONS and isinstance(values, dict):
            for key in values:
                if key not in _fields(section):
                    msg = f"{where}: [{section}] {_unknown(key, _fields(section))}"
                    raise ConfigError(msg)


def _with_environment(raw: dict[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """`LEVERWATCH_SERVE_PORT` sets `[serve] port`; an unknown variable of ours is refused."""
    known = {f"{PREFIX}{section.upper()}_{key.upper()}": (section, key) for section in SECTIONS for key in _fields(section)}
    raw = {section: dict(values) if isinstance(values, dict) else values for section, values in raw.items()}
    for name, text in environment.items():
        if not name.startswith(PREFIX) or name in NOT_KEYS:
            continue
        if name not in known:
            msg = f"environment: {_unknown(name, list(known))}"
            raise ConfigError(msg)
        section, key = known[name]
        raw.setdefault(section, {})[key] = text
    return raw


def _fields(section: str) -> list[str]:
    return [field.name for field in msgspec.structs.fields(SECTIONS[section])]


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"key {name!r} is unknown{hint} (known: {', '.join(known)})"
