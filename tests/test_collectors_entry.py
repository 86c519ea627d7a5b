"""Whatever bytes come as metrics, logs, scrapes or evaluations: they are refused at the door, or loaded, or set aside; nothing raises."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from collectors_bodies import START
from collectors_metrics import counter, gauge, histogram, logs, metrics, point, record

from collectors import entry, evaluations
from collectors.entry import UnsoundBodyError
from collectors.load_evaluations import EvaluationBatch
from collectors.load_samples import SampleLoader
from collectors.otlp_logs import read
from collectors.prometheus_text import Scrape, spooled
from collectors.spool_records import Position, Record

ROUNDS = 300
END = json.dumps(
    {"schema": "dynamo.request.trace.v1", "event_type": "request_end", "request": {"request_id": "r", "request_received_ms": 1e12}}
)
SOUND = {
    "metrics": metrics(gauge("g", point(1.0, a="b")), counter("c", point(2.0)), histogram("h", [1.0, 2.0], [1, 2, 3])).SerializeToString(),
    "logs": logs(record(attributes={"event_type": "request_end", "payload": END}), scope="dynamo.request_trace").SerializeToString(),
    "scrapes": spooled(Scrape("h:1"), b'# TYPE h histogram\nh_bucket{le="1"} 1\nh_bucket{le="+Inf"} 2\nh_sum 3\nh_count 2\n'),
    "evaluations": json.dumps([{"suite": "s", "score": 0.5, "evaluated_at": "2026-11-29T12:00:00Z", "n": 3}]).encode(),
}


def mutated(content: bytes, chance: random.Random) -> bytes:
    """The same with a few bytes changed, cut out or doubled."""
    made = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(made))
        how = chance.randrange(4)
        if how == 0:
            made[place] = chance.randrange(256)
        elif how == 1:
            del made[place : place + chance.randint(1, 8)]
        elif how == 2:
            made[place:place] = made[place : place + chance.randint(1, 8)]
        else:
            made[place] ^= 1 << chance.randrange(8)
        made = made or bytearray(b"\x00")
    return bytes(made)


def loaded(signal: str, content: bytes) -> int:
    """Reads a body as loading does; gives how many items were seen in it."""
    spooled_record = Record(signal, "sender", START, content, Position(0, 0))
    if signal in ("metrics", "scrapes"):
        batch = SampleLoader().prepare([spooled_record])
        return batch.rows.num_rows + len(batch.skipped)
    found = EvaluationBatch()
    if signal == "evaluations":
        found.read_posted(spooled_record)
    else:
        said = read(type(logs()).FromString(content), START)
        found.add(spooled_record, [*said.evaluations])
        return said.span_count + len(said.evaluations) + said.rejected.total()
    return sum(table.num_rows for table in found.tables) + len(found.wrong)


@pytest.mark.parametrize("signal", SOUND)
def test_a_body_with_changed_bytes_is_refused_or_read_and_raises_nothing(signal: str) -> None:
    chance = random.Random(f"seed {signal}")
    taken = 0
    for _ in range(ROUNDS):
        content = mutated(SOUND[signal], chance)
        try:
            found = entry.CHECKS[signal](content)
        except UnsoundBodyError:
            continue
        if found.items:
            taken += 1
            seen = loaded(signal, found.body)
            assert seen == found.items or signal == "scrapes"
    assert taken


@pytest.mark.parametrize("signal", SOUND)
def test_a_sound_body_is_taken_whole(signal: str) -> None:
    found = entry.CHECKS[signal](SOUND[signal])
    assert (found.rejected_count, found.message, loaded(signal, found.body)) == (0, "", found.items)


def test_an_export_of_too_many_points_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "LIMIT_POINTS", 2)
    with pytest.raises(UnsoundBodyError, match="more than 2 data points in one export") as caught:
        entry.of_metrics(metrics(gauge("g", point(1.0), point(2.0), point(3.0))).SerializeToString())
    assert caught.value.reason == "export is too large"


def test_too_many_evaluations_at_once_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluations, "LIMIT_ROWS", 1)
    with pytest.raises(UnsoundBodyError, match="2 evaluations; at most 1 are taken at once"):
        entry.of_evaluations(json.dumps([{"suite": "s", "score": 1}] * 2).encode())


def test_log_records_are_stripped_to_the_facts(recordings: Path) -> None:
    for path in sorted(recordings.glob("*/logs/*.pb")):
        found = entry.of_logs(path.read_bytes())
        assert found.items == 0 or path.parts[-3] == "dynamo-reqtrace"
        assert found.dropped.total() > 0
