"""Lines of the NCCL inspector in, metrics exports out: time and bandwidth of each collective, under its Prometheus mode's names."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import Gauge, Metric, NumberDataPoint

RECORDS_A_BODY = 1000
# A record's part, its prefix, and the metric that each of its numbers becomes. Units: microseconds, bytes, 1e9 bytes a second.
NAMES = {
    "coll": {
        "exec_time_us": "nccl_collective_exec_time_microseconds",
        "msg_size_bytes": "nccl_collective_message_size_bytes",
        "algobw_gbs": "nccl_algorithm_bandwidth_gbs",
        "busbw_gbs": "nccl_bus_bandwidth_gbs",
    },
    "p2p": {
        "exec_time_us": "nccl_p2p_exec_time_microseconds",
        "msg_size_bytes": "nccl_p2p_message_size_bytes",
        "algobw_gbs": "nccl_p2p_algorithm_bandwidth_gbs",
        "busbw_gbs": "nccl_p2p_bus_bandwidth_gbs",
    },
}


class NcclError(ValueError):
    """A record is none of the NCCL inspector; says what is missing."""


def is_record(item: object) -> bool:
    """Whether a parsed JSON object is a record of the inspector."""
    return isinstance(item, dict) and "header" in item and any(f"{kind}_perf" in item for kind in NAMES)


def exports(records: Sequence[Mapping[str, Any]]) -> Iterator[bytes | NcclError]:
    """Metrics exports of the records of one file, with an error in the place of each that cannot be read. The replica is the host."""
    for start in range(0, len(records), RECORDS_A_BODY):
        request = ExportMetricsServiceRequest()
        for number, record in enumerate(records[start : start + RECORDS_A_BODY], start + 1):
            try:
                host, metrics = _metrics(record)
            except NcclError as error:
                yield NcclError(f"record {number}: {error}")
                continue
            owner = request.resource_metrics.add()
            if host:
                owner.resource.attributes.append(_attribute("host.name", host))
            owner.scope_metrics.add().metrics.extend(metrics)
        if request.resource_metrics:
            yield request.SerializeToString()


def _metrics(record: Mapping[str, Any]) -> tuple[str, list[Metric]]:
    if not is_record(record):
        msg = "an object with header, metadata and coll_perf or p2p_perf is taken"
        raise NcclError(msg)
    header, metadata = record.get("header"), record.get("metadata")
    kind = next(kind for kind in NAMES if f"{kind}_perf" in record)
    said = record[f"{kind}_perf"]
    if not isinstance(header, dict) or not isinstance(metadata, dict) or not isinstance(said, dict):
        msg = f"header, metadata and {kind}_perf are objects"
        raise NcclError(msg)
    moment = metadata.get("dump_timestamp_us")
    if not isinstance(moment, int) or not 0 < moment < 9e15:
        msg = "metadata.dump_timestamp_us is missing or no time"
        raise NcclError(msg)
    labels = _labels(header, metadata, said, kind)
    found = [
        Metric(name=name, gauge=Gauge(data_points=[NumberDataPoint(time_unix_nano=moment * 1000, as_double=value, attributes=labels)]))
        for key, name in NAMES[kind].items()
        if (value := _number(said.get(f"{kind}_{key}"))) is not None
    ]
    return str(metadata.get("hostname") or ""), found


def _labels(header: Mapping[str, Any], metadata: Mapping[str, Any], said: Mapping[str, Any], kind: str) -> list[KeyValue]:
    """What tells one operation from another: its communicator, rank and serial number, and what kind it was."""
    told = {
        "comm_id": header.get("id"),
        "comm_name": header.get("comm_name"),
        "rank": header.get("rank"),
        "nranks": header.get("n_ranks"),
        "n_nodes": header.get("nnodes"),
        "pid": metadata.get("pid"),
        "collective" if kind == "coll" else "p2p_operation": said.get(kind),
        "peer": said.get("p2p_peer"),
        "sn": said.get(f"{kind}_sn"),
        "timing_source": said.get(f"{kind}_timing_source"),
    }
    return [_attribute(key, str(value)) for key, value in told.items() if value not in (None, "")]


def _attribute(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    return float(value) if is_number else None
