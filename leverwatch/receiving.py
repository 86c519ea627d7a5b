"""The ways in of one running server: the door that every receiver asks, the scraper that goes through it, and where OTLP/HTTP is taken."""

from __future__ import annotations

from dataclasses import dataclass

from collectors.door import Door
from collectors.scrape import Scraper, Target


@dataclass(frozen=True, slots=True)
class Receiving:
    """A door, the scraper of the configured targets, and the port of OTLP over HTTP."""

    door: Door
    scraper: Scraper
    otlp_http_port: int = 4318
    is_tls: bool = False

    @classmethod
    def through(cls, door: Door, targets: tuple[Target, ...], otlp_http_port: int = 4318, *, is_tls: bool = False) -> Receiving:
        """A scraper in front of a door; it begins with `scraper.start()`."""
        return cls(door, Scraper(targets, door), otlp_http_port, is_tls)
