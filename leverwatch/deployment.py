"""The configuration in, what the loader and the tables of links and prices need of it out."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from collectors import price_tables
from collectors.deployed import Asked, Deployed, deployed
from collectors.facts import Link
from collectors.price_tables import Price
from leverwatch.config import Config, ConfigError
from queries.store import Store


def of(config: Config) -> Deployed:
    """The deployment as configured.

    Raises:
        ConfigError: the key of the hash is missing or cannot be read, or a price begins at what is no time.
        RegistryError, IdentityError: the registry, a default or the key cannot be used.
    """
    _prices(config)
    who = config.identity
    return deployed(
        Asked(
            keep_content=config.store.keep_content,
            tenant_from=who.tenant_from,
            hash=who.hash,
            hash_key=_key(config) if who.hash else b"",
            hash_attributes=who.hash_attributes,
            registry=Path(config.registry.file) if config.registry.file else None,
            defaults=config.defaults,
            links=_links(config),
        )
    )


def publish(store: Store, config: Config) -> None:
    """Puts links and prices where SQL finds them.

    Raises:
        ConfigError: a price begins at what is no time.
    """
    price_tables.write(store, _links(config), _prices(config))


def _links(config: Config) -> tuple[Link, ...]:
    return tuple(Link(one.topology, one.hardware, one.peak_bytes_per_s) for one in config.links)


def _prices(config: Config) -> list[Price]:
    return [Price(one.hardware, one.usd_per_gpu_hour, _moment(one.from_time, number)) for number, one in enumerate(config.prices)]


def _moment(text: str, number: int) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        msg = f"[[prices]] row {number + 1}: from_time {text!r}: ISO 8601 such as 2026-11-29T12:00:00Z is taken, or nothing for always"
        raise ConfigError(msg) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _key(config: Config) -> bytes:
    path = config.identity.hash_key_file
    if not path:
        msg = "[identity] hash needs hash_key_file: the file with the key that makes the hashes"
        raise ConfigError(msg)
    try:
        return Path(path).read_bytes().strip()
    except OSError as error:
        msg = f"[identity] hash_key_file {path}: {error.strerror}"
        raise ConfigError(msg) from error
