"""A running server in, every number of its `/metrics` out."""

from __future__ import annotations

import time
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family

from collectors.spool_records import Record
from leverwatch.core_numbers import CoreNumbers
from leverwatch.engine_room import EngineRoom
from leverwatch.kafka_numbers import kafka_families
from leverwatch.lake_room import LakeRoom
from leverwatch.ledger_rows import item_family, ledger_rows
from leverwatch.observe.house_numbers import HouseNumbers, process_families, warning_family
from leverwatch.observe.store_numbers import StoreNumbers, lake_families
from leverwatch.prometheus_page import gauge
from leverwatch.receiving import Receiving
from leverwatch.refused import Refused
from leverwatch.worker import Worker


class ServedNumbers:
    """The numbers of one server: what it received, what its jobs did, what its store says, and the core numbers of the segments."""

    def __init__(self, room: EngineRoom, worker: Worker, refused: Refused, receiving: Receiving | None) -> None:
        self._room, self._worker, self._refused, self._receiving = room, worker, refused, receiving
        self._core = CoreNumbers(room.store, room.policies, room.config.serve.limit_metric_segments)
        self._store = StoreNumbers(room.store, [one.name for one in room.config.receivers])
        self._house = HouseNumbers(room)

    def families(self) -> Iterator[Family]:
        """Everything."""
        room, observer, now = self._room, self._worker.observer, self._room.clock()
        yield item_family(ledger_rows(room, None))
        yield from self._of_ingest()
        yield from observer.jobs.families()
        yield gauge("leverwatch_jobs_failing", "Jobs that fail and are tried again.", len(self._worker.errors))
        yield self._judged()
        yield from self._store.families(now)
        yield from observer.deliveries.families()
        yield from self._house.families()
        yield from observer.pages.families()
        if isinstance(room, LakeRoom):
            yield from lake_families(room.store, now)
        yield from process_families("serve", observer)
        yield from self._core.families(now)

    def _of_ingest(self) -> Iterator[Family]:
        room, receiving = self._room, self._receiving
        yield gauge("leverwatch_spool_backlog_bytes", "Bytes that were acknowledged and wait to be loaded.", room.spool.backlog_bytes)
        says = "Seconds since the oldest of these bytes came; 0 where none waits."
        yield gauge("leverwatch_spool_oldest_age_seconds", says, self._oldest_age_s())
        yield gauge("leverwatch_disk_free_bytes", "Bytes free on the disk of the data folder.", room.house.free_bytes())
        yield self._refused.family()
        yield from self._worker.observer.door.families()
        yield warning_family(room.warnings() | (dict(receiving.warnings()) if receiving is not None else {}))
        if receiving is not None and receiving.kafka is not None:
            yield from kafka_families(receiving.kafka)

    def _oldest_age_s(self) -> float:
        room = self._room
        first = next(room.spool.read(room.loader.position(), 1), None) if room.spool.backlog_bytes else None
        return max(0.0, time.time() - first.received_unix_nano / 1e9) if isinstance(first, Record) else 0.0

    def _judged(self) -> Family:
        says = "When everything that judging takes last went through, in seconds since 1970; absent before."
        family = GaugeMetricFamily("leverwatch_judged_timestamp_seconds", says)
        if self._worker.judged_at is not None:
            family.add_metric([], self._worker.judged_at.timestamp())
        return family
