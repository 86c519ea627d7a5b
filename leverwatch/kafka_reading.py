"""A configuration in, the reader of its topics out: into a spool, or into a lake by a way of its own."""

from __future__ import annotations

from pathlib import Path

from collectors.door import Door
from collectors.kafka import KafkaReader
from collectors.kafka_body import Keep, keep_in
from collectors.kafka_door import KafkaDoor
from collectors.kafka_lake import KafkaLake
from collectors.lake_batch import LakeReader
from collectors.lake_sink import Pace
from leverwatch import deployment
from leverwatch.config import Config
from queries.lake import Lake


def into_spool(config: Config, folder: Path, door: Door) -> KafkaReader | None:
    """What reads topics to the door of a data folder; None where none is configured. Raises KafkaMissingError, KafkaOptionError."""
    kafka = config.kafka
    return KafkaReader(kafka, KafkaDoor(door, keep_in(folder), kafka.encoding)) if kafka.brokers else None


def into_lake(config: Config, lake: Lake, keep: Keep) -> KafkaReader | None:
    """What reads topics into a lake; None where none is configured. Not by the sink, since offsets stand in the commits that hold the rows.

    Raises:
        KafkaMissingError, KafkaOptionError: as `into_spool`.
    """
    kafka, store = config.kafka, config.store
    if not kafka.brokers:
        return None
    pace = Pace(store.commit_interval_s, store.commit_bytes, store.limit_backlog_bytes)
    return KafkaReader(kafka, KafkaLake(lake, LakeReader(deployment.of(config)), kafka.group, kafka.encoding, keep, pace))
