"""The ways in of one running server: the door that all ask, what fetches by itself, and where OTLP over HTTP is taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from collectors.door import Door
from collectors.kafka import KafkaReader
from collectors.scrape import Scraper, Target


@dataclass(frozen=True, slots=True)
class Receiving:
    """A door, the scraper of the configured targets, the reader of Kafka where there is one, and the port of OTLP over HTTP."""

    door: Door
    scraper: Scraper
    otlp_http_port: int = 4318
    is_tls: bool = False
    kafka: KafkaReader | None = None

    @classmethod
    def through(
        cls,
        door: Door,
        targets: tuple[Target, ...],
        otlp_http_port: int = 4318,
        *,
        is_tls: bool = False,
        kafka: KafkaReader | None = None,
    ) -> Receiving:
        """A scraper in front of a door, and what reads Kafka; they begin with `start()`."""
        return cls(door, Scraper(targets, door), otlp_http_port, is_tls, kafka)

    def start(self) -> None:
        """Begins; to be called in a running event loop."""
        if self.kafka:
            self.kafka.start()
        self.scraper.start()

    async def stop(self, grace_s: float) -> None:
        """Ends, once what is stored of Kafka is committed."""
        await self.scraper.stop()
        if self.kafka:
            await self.kafka.stop(grace_s)

    def lags(self) -> Mapping[tuple[str, str], int]:
        """How many messages of Kafka wait to be read, by sender and signal."""
        return self.kafka.lags_by_sender() if self.kafka else {}

    def warnings(self) -> Mapping[str, str]:
        """What is not as it should be, by where it comes from."""
        return {**self.scraper.warnings, **(self.kafka.warnings if self.kafka else {})}
