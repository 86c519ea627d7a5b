"""What was acknowledged and is not loaded yet is pending, by sender and signal, also after a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path

from collectors_bodies import body, span
from collectors_metrics import gauge, metrics, point

from collectors.decode import check
from collectors.door import Door
from collectors.load import Loader
from collectors.spool import Spool
from collectors.waiting import Waiting
from queries.store import Store

NOW = 1_700_000_000_000_000_000


def test_items_told_as_loaded_before_they_were_told_as_taken_are_nobodys() -> None:
    waiting = Waiting()
    waiting.add("s", "traces", -3)
    assert waiting.counts() == {}
    waiting.add("s", "traces", 3)
    waiting.add("s", "metrics", 2)
    assert waiting.counts() == {("s", "metrics"): 2}


def test_items_are_pending_from_their_acknowledgement_until_they_are_loaded_and_over_a_restart(tmp_path: Path) -> None:
    store = Store(tmp_path)
    loader = Loader(store)
    spool = Spool(tmp_path / "spool", loader.position())
    door = Door(spool, lambda: NOW, loader.note, check, waiting=loader.waiting)
    asyncio.run(door.take("traces", "a", body(span(1), span(2))))
    asyncio.run(door.take("metrics", "b", metrics(gauge("g", point(1.0)), gauge("h", point(1.0))).SerializeToString()))
    asyncio.run(door.take("traces", "a", body(span(3))))
    assert loader.waiting.counts() == {("a", "traces"): 3, ("b", "metrics"): 2}
    spool.close()

    again = Loader(store)
    spool = Spool(tmp_path / "spool", again.position())
    again.count_waiting(spool)
    assert again.waiting.counts() == {("a", "traces"): 3, ("b", "metrics"): 2}
    again.load_next(spool)
    assert again.waiting.counts() == {}
    spool.close()
    store.close()
