"""`leverwatch.toml` and the environment in, one frozen configuration out. Read once, at start."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin
from urllib.parse import urlsplit

import msgspec

from alerts.receivers import Receiver
from collectors.kafka_settings import Kafka
from collectors.scrape import Target
from leverwatch import config_errors
from leverwatch.access_settings import Access, Identity, Link, Price, Registry, Tls
from leverwatch.described import is_struct, item_kind, says
from leverwatch.holdout_settings import Holdout
from leverwatch.observe_settings import Observe
from leverwatch.retention_settings import Retention
from leverwatch.segment_settings import Segments
from leverwatch.store_settings import StoreConfig
from leverwatch.switchback_settings import Switchback

PREFIX = "LEVERWATCH_"
PATHS = ("file", "policies")  # keys that hold a path; so do all that end in `_file`, and `uri` where it is no address
Limit = Annotated[float, msgspec.Meta(gt=0, lt=1e9)]
NOT_KEYS = (
    "LEVERWATCH_DATA",
    "LEVERWATCH_REQUIRE_ALERTMANAGER",
    "LEVERWATCH_REQUIRE_BROWSER",
    "LEVERWATCH_REQUIRE_PROMTOOL",
    "LEVERWATCH_TOKEN",
    "LEVERWATCH_CA_FILE",
    "LEVERWATCH_CLIENT_CERT_FILE",
    "LEVERWATCH_CLIENT_KEY_FILE",
)


class ConfigError(ValueError):
    """The configuration cannot be used; names the file or variable, the key, what came and what is taken."""


class Serve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the server listens. Port 0 is a free one."""

    host: Annotated[str, says("the address or name to listen on, for all three ports")] = "127.0.0.1"
    grpc_port: Annotated[int, says("OTLP over gRPC")] = 4317
    otlp_http_port: Annotated[int, says("OTLP over HTTP")] = 4318
    port: Annotated[int, says("pages and API")] = 8080
    allow_open: Annotated[bool, says("listen beyond loopback although neither tokens nor client certificates guard a port")] = False
    limit_metric_segments: Annotated[
        int, msgspec.Meta(ge=0, le=10_000), says("segments with series of their own in /metrics, most requests first")
    ] = 50
    hosts: Annotated[tuple[str, ...], says("more names that browsers reach the pages by, where no TLS guards them")] = ()


class SqlConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The limits of ad-hoc SQL. An answer has at most 2,000,000 values, rows times columns, whatever is set."""

    limit_rows: Annotated[int, says("the most rows of an answer, unless a statement asks for more")] = 10_000
    limit_s: Annotated[float, says("seconds after which a statement is stopped, unless it asks for more")] = 10.0
    most_s: Annotated[float, says("the most seconds that a statement may ask for")] = 60.0
    limit_bytes: Annotated[int, says("bytes of memory that a statement may take")] = 1024 * 1024 * 1024


class Alerts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which policies judge: the shipped ones, and those of a folder of one's own."""

    policies: Annotated[str, says("a folder with policies of one's own, which join or override the shipped ones")] = ""
    base_url: Annotated[str, says("the address that links in notices begin with; empty: where the pages are served")] = ""

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if self.base_url and (parts.scheme not in ("http", "https") or not parts.hostname):
            msg = f"[alerts] base_url = {self.base_url!r}: an address such as https://leverwatch.example is taken"
            raise ValueError(msg)


class SloConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a good request keeps to, for the good fraction and goodput. Limits are inclusive; one that is not set does not count."""

    ttft_s: Annotated[Limit | None, says("above 0: seconds to the first token")] = None
    tpot_s: Annotated[Limit | None, says("above 0: seconds per output token after the first")] = None
    e2e_s: Annotated[Limit | None, says("above 0: seconds from start to end")] = None


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that can be set."""

    serve: Serve = Serve()
    store: StoreConfig = StoreConfig()
    sql: SqlConfig = SqlConfig()
    slo: SloConfig = SloConfig()
    alerts: Alerts = Alerts()
    observe: Observe = Observe()
    access: Access = Access()
    tls: Tls = Tls()
    identity: Identity = Identity()
    registry: Registry = Registry()
    retention: Retention = Retention()
    segments: Segments = Segments()
    switchback: Switchback = Switchback()
    defaults: dict[str, Any] = {}
    receivers: tuple[Receiver, ...] = ()
    scrape: tuple[Target, ...] = ()
    kafka: Kafka = Kafka()
    links: tuple[Link, ...] = ()
    prices: tuple[Price, ...] = ()
    holdouts: tuple[Holdout, ...] = ()


KINDS: dict[str, Any] = {field.name: field.type for field in msgspec.structs.fields(Config)}
SECTIONS: dict[str, type[msgspec.Struct]] = {
    name: kind for name, kind in KINDS.items() if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
}


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
    raw = _from_folder(raw, path.parent)
    raw = _with_environment(raw, environment)
    try:
        return msgspec.convert(raw, Config, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        names = {key: name for name, key in variables().items() if name in environment}
        told = config_errors.said(error, KINDS, names)
        where = "environment" if not path.is_file() or told.startswith(PREFIX) else path
        msg = f"{where}: {told}"
        raise ConfigError(msg) from error


def _from_folder(raw: Any, folder: Path, name: str = "") -> Any:
    """A file's values with its relative paths taken from its own folder."""
    if isinstance(raw, dict):
        return {key: _from_folder(value, folder, key) for key, value in raw.items()}
    if isinstance(raw, list):
        return [_from_folder(value, folder) for value in raw]
    is_path = name.endswith("_file") or name in PATHS or (name == "uri" and "://" not in str(raw))
    return str(folder / raw) if is_path and isinstance(raw, str) and raw else raw


def _refuse_unknown(raw: dict[str, Any], where: str) -> None:
    for section, values in raw.items():
        if section not in KINDS:
            msg = f"{where}: {_unknown(section, list(KINDS))}"
            raise ConfigError(msg)
        for place, table, kind in _tables(section, values):
            known = [field.name for field in msgspec.structs.fields(kind)]
            for key in table:
                if key not in known:
                    msg = f"{where}: {place} {_unknown(key, known)}"
                    raise ConfigError(msg)


def _tables(section: str, values: Any) -> Iterator[tuple[str, dict[str, Any], type[msgspec.Struct]]]:
    """The tables of a section, each with where it stands and the struct that it makes."""
    one = SECTIONS.get(section)
    if one and isinstance(values, dict):
        yield f"[{section}]", values, one
        for field in msgspec.structs.fields(one):
            yield from ((f"[{section}] {field.name}:", table, kind) for table, kind in _rows(field.type, values.get(field.name)))
    elif not one:
        yield from ((f"[[{section}]]", table, kind) for table, kind in _rows(KINDS[section], values))


def _rows(kind: Any, values: Any) -> Iterator[tuple[dict[str, Any], type[msgspec.Struct]]]:
    """The tables of a list of tables, each with its struct."""
    if is_struct(item := item_kind(kind)) and isinstance(values, list):
        yield from ((table, item) for table in values if isinstance(table, dict))


def variables() -> dict[str, tuple[str, ...]]:
    """The environment variable of every key, with the key's path: `LEVERWATCH_SERVE_PORT` is `[serve] port`."""
    found = {f"{PREFIX}{section.upper()}_{key.upper()}": (section, key) for section in SECTIONS for key in _fields(section)}
    return {**found, **{f"{PREFIX}{name.upper()}": (name,) for name in KINDS if name not in SECTIONS}}


def _with_environment(raw: dict[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """The file's keys with those of the environment over them; an unknown variable of ours is refused."""
    known = variables()
    raw = {section: dict(values) if isinstance(values, dict) else values for section, values in raw.items()}
    for name, text in environment.items():
        if not name.startswith(PREFIX) or name in NOT_KEYS:
            continue
        if name not in known:
            msg = f"environment: {_unknown(name, list(known))}"
            raise ConfigError(msg)
        section, *key = known[name]
        if key:
            kind = {field.name: field.type for field in msgspec.structs.fields(SECTIONS[section])}[key[0]]
            raw.setdefault(section, {})[key[0]] = _read_variable(name, text, kind)
        else:
            raw[section] = _read_variable(name, text, KINDS[section])
    return raw


def _read_variable(name: str, text: str, kind: Any) -> Any:
    """A variable's value: lists of words take commas, tables and lists of them JSON, everything else the bare text."""
    item = item_kind(kind)
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if text[:1] in ("[", "{") and (item or get_origin(bare) is dict):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            msg = f"environment: {name}: {error}"
            raise ConfigError(msg) from error
    return [word.strip() for word in text.split(",") if word.strip()] if item else text


def _fields(section: str) -> list[str]:
    return [field.name for field in msgspec.structs.fields(SECTIONS[section])]


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ";"
    return f"key {name!r} is unknown{hint} known: {', '.join(known)}"
