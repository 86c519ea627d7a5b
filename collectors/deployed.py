"""What the configuration says of a deployment in, what the loader of spans does with it out: facts, hashed ids, dropped text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl
import pyarrow as pa
from msgspec import structs

from collectors import content, dialects, facts, identity, rows, translate
from collectors import wire_layout as at
from collectors.decode import Tables
from collectors.dialect_parts import Deployment, Source
from collectors.facts import Link, Said
from collectors.identity import Hasher
from collectors.load_evaluations import EvaluationBatch
from collectors.registry import RegistryFile, Value


@dataclass(frozen=True, slots=True)
class Deployed:
    """A deployment as configured. The registry is looked at once a batch."""

    facts: Deployment = field(default_factory=dialects.deployment)
    keep_content: bool = False
    registry: RegistryFile | None = None
    defaults: Mapping[str, Value] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    hasher: Hasher | None = None

    def dropped(self) -> Callable[[str], bool] | None:
        """Which keys never leave the decoder; None where all text is kept."""
        return None if self.keep_content else content.is_content(self.facts, dialects.shipped())

    def said(self, tables: Tables, arrivals: list[rows.Arrival]) -> Said | None:
        """What registry and defaults say of a batch's spans; None where they say nothing."""
        if self.registry is None and not self.defaults:
            return None
        registry = self.registry.current() if self.registry else None
        replicas = pl.Series(rows.replicas(tables, self.facts, arrivals), dtype=pl.String)
        return facts.said(registry, self.defaults, replicas, tables.spans[:, at.START])

    def finished(self, spoken: translate.Spoken) -> translate.Spoken:
        """What spans say, with peaks of links where nothing says one, and hashes in place of ids."""
        signals = facts.with_links(spoken.signals, self.links)
        return replace(spoken, signals=self.hasher.signals(signals) if self.hasher else signals)

    def hashed(self, tables: Tables) -> Tables:
        """The tables with hashes in place of ids. To be called when nothing reads ids from them any more."""
        return self.hasher.tables(tables) if self.hasher else tables

    def hash_evaluations(self, batch: EvaluationBatch) -> None:
        """Puts hashes in place of the request ids of evaluations, by which they are joined to requests, and of ids made from these."""
        if self.hasher and "request_id" in self.hasher.keys:
            batch.tables = [_hashed(table, self.hasher) for table in batch.tables]

    def stored(self, found: rows.Rows) -> rows.Rows:
        """The rows without texts that no key gives away, and of errors, which may quote a prompt."""
        if self.keep_content:
            return found
        return replace(found, spans=content.without_texts(content.without_error_text(found.spans), self.facts.content))


@dataclass(frozen=True, slots=True)
class Asked:
    """What a configuration asks for, unread. `hash_key` is read where `hash` names anything."""

    keep_content: bool = False
    tenant_from: tuple[str, ...] | None = None
    hash: Collection[str] = ()
    hash_key: bytes = field(default=b"", repr=False)
    hash_attributes: tuple[str, ...] = ()
    registry: Path | None = None
    defaults: Mapping[str, object] = field(default_factory=dict)
    links: tuple[Link, ...] = ()


def deployed(asked: Asked) -> Deployed:
    """A deployment, checked.

    Raises:
        RegistryError: the registry or a default cannot be used.
        IdentityError: ids are to be hashed without a key.
    """
    found = _with_tenants(dialects.deployment(), asked.tenant_from)
    return Deployed(
        found,
        asked.keep_content,
        RegistryFile(asked.registry, found) if asked.registry else None,
        facts.defaults(asked.defaults, found),
        asked.links,
        identity.hasher(asked.hash, asked.hash_key, found, dialects.shipped(), asked.hash_attributes),
    )


def _hashed(evaluations: pa.Table, hasher: Hasher) -> pa.Table:
    for column in ("request_id", "evaluation_id"):
        hashes = hasher.series("request_id", pl.Series(evaluations[column], dtype=pl.String)).to_arrow().cast(pa.string())
        evaluations = evaluations.set_column(evaluations.schema.get_field_index(column), column, hashes)
    return evaluations


def _with_tenants(found: Deployment, keys: tuple[str, ...] | None) -> Deployment:
    """The facts with other attributes for the tenant, behind the one of our own."""
    if keys is None:
        return found
    own = f"{found.prefixes.own}tenant"
    tenants = tuple(Source(key, "text") for key in dict.fromkeys((own, *keys)))
    return structs.replace(found, signals={**found.signals, "tenant": tenants})
