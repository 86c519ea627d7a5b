"""A plan's history written to files: OTLP exports by signal, the engines' answers as JSON lines, each replica's last page of metrics.

No response tap stands in front of the engines here: what it would read is in the answers. All of it but the pages can be loaded.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from demo.engines import voices
from demo.play import HOUR_NS, SLICE_NS, Plan, Played, unix_ns
from demo.records import Request
from demo.telemetry import Telemetry

ANSWERS = "answers.jsonl"


def record(plan: Plan, folder: Path, say: Callable[[str], None]) -> Played:
    """Writes the plan's history below `folder`, which must be empty or new. Raises FileExistsError, OSError."""
    if folder.exists() and any(folder.iterdir()):
        msg = f"{folder}: not empty; a new or an empty folder is taken"
        raise FileExistsError(msg)
    folder.mkdir(parents=True, exist_ok=True)
    fleet, played = plan.fleet(), Played()
    telemetry = Telemetry(plan.scenario.disorder, plan.began_ns, tapped=False)
    files: Counter[str] = Counter()
    now_ns = unix_ns(plan.now)
    at_ns = now_ns - int(plan.hours * HOUR_NS)
    with (folder / ANSWERS).open("w", encoding="utf-8") as answers:
        while at_ns < now_ns:
            at_ns = min(at_ns + SLICE_NS, now_ns)
            events = fleet.until(at_ns)
            _answered((event for event in events if isinstance(event, Request)), answers)
            for body in telemetry.bodies(events):
                files[body.signal] += 1
                path = folder / body.signal / f"{files[body.signal]:05}.pb"
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(body.content)
                played.items[body.signal] += body.items
    for replica, text in telemetry.texts.items():
        (folder / f"metrics-{replica}.prom").write_text(text, encoding="utf-8")
    played.requests = fleet.requests
    say(f"{plan.scenario.name}: {played}, written to {folder}")
    return played


def _answered(requests: Iterable[Request], answers: TextIO) -> None:
    """What the client of each request got, in the envelope of whoever keeps it."""
    engines = voices.voices()
    for request in requests:
        body = engines[request.at.engine].answer(request)
        if body:
            received_at = datetime.fromtimestamp(request.ended_ns / 1e9, UTC).isoformat()
            line = {"request_id": body.get("id"), "trace_id": request.trace_id.hex(), "received_at": received_at, "body": body}
            answers.write(json.dumps({key: value for key, value in line.items() if value is not None}) + "\n")
