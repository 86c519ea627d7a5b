"""What a data folder holds once its server has ended: the ids of all spans and requests, held against those that were acknowledged."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom

SPAN_IDS = "select trace_id || span_id as id from spans"
TRACE_IDS = "select trace_id as id from requests"


@dataclasses.dataclass(frozen=True)
class Held:
    """Acknowledged spans, and what became of them in `spans` and `requests`."""

    acknowledged: int
    spans: int
    lost_spans: int
    twice_spans: int
    requests: int
    lost_requests: int
    twice_requests: int

    def __str__(self) -> str:
        return (
            f"{self.acknowledged:,} spans acknowledged\n"
            f"spans: {self.spans:,} held, {self.lost_spans:,} acknowledged ones lost, {self.twice_spans:,} stored twice\n"
            f"requests: {self.requests:,} held, {self.lost_requests:,} acknowledged ones lost, {self.twice_requests:,} stored twice"
        )


def held(folder: Path, acknowledged: bytes) -> Held:
    """What a folder holds after all that waits was loaded. `acknowledged`: 24 bytes a span, its trace id and its span id."""
    room = EngineRoom(folder, Config())
    try:
        room.drain()
        spans, requests = ids(room, SPAN_IDS, 24), ids(room, TRACE_IDS, 16)
    finally:
        room.close()
    sent = np.frombuffer(acknowledged, np.dtype("V24"))
    traces = np.ascontiguousarray(sent.view(np.uint8).reshape(-1, 24)[:, :16]).view(np.dtype("V16")).ravel()
    return Held(len(sent), len(spans), missing(sent, spans), repeated(spans), len(requests), missing(traces, requests), repeated(requests))


def ids(room: EngineRoom, sql: str, size: int) -> np.ndarray:
    """The ids of a question as fixed bytes."""
    text = "".join(room.frame(sql)["id"].to_list())
    return np.frombuffer(bytes.fromhex(text), np.dtype(f"V{size}"))


def missing(wanted: np.ndarray, there: np.ndarray) -> int:
    """How many of some ids are not there."""
    return len(set(wanted.tolist()) - set(there.tolist()))


def repeated(there: np.ndarray) -> int:
    """How many ids stand there a second time."""
    return len(there) - len(set(there.tolist()))
