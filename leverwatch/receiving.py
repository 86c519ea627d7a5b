"""The ways in of one running server: the door that every receiver asks, and the scraper that goes through it."""

from __future__ import annotations

from dataclasses import dataclass

from collectors.door import Door
from collectors.scrape import Scraper, Target


@dataclass(frozen=True, slots=True)
class Receiving:
    """A door and the scraper of the configured targets."""

    door: Door
    scraper: Scraper

    @classmethod
    def through(cls, door: Door, targets: tuple[Target, ...]) -> Receiving:
        """A scraper in front of a door; it begins with `scraper.start()`."""
        return cls(door, Scraper(targets, door))
