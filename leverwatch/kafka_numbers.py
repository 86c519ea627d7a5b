"""A reader of Kafka in, its families of Prometheus out."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family

from collectors.kafka import KafkaReader


def kafka_families(reader: KafkaReader) -> Iterator[Family]:
    """How far behind each partition is that this process reads, what became of messages, and whether reading is paused."""
    lag = GaugeMetricFamily("leverwatch_kafka_lag_messages", "Messages that wait to be read.", labels=["topic", "partition"])
    for place, behind in sorted(reader.lags.copy().items()):
        lag.add_metric([place.topic, str(place.partition)], behind)
    counted = CounterMetricFamily("leverwatch_kafka_messages", "Messages by what became of them.", labels=["topic", "outcome"])
    for (topic, outcome), count in sorted(reader.counts.copy().items()):
        counted.add_metric([topic, outcome], count)
    paused = "paused" in reader.warnings
    yield from (lag, counted, GaugeMetricFamily("leverwatch_kafka_paused", "1 while the store takes nothing.", value=float(paused)))
