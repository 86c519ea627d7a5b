"""A data folder in, its store out, with views that name the parts that are there."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from queries import sealing, snapshot
from queries.store import Store


def opened(folder: Path, memory_limit: str, now: datetime) -> Store:
    """The store of a folder, ready to be read and written.

    Raises:
        StoreError, PartsError: it cannot be opened, or a listed part is missing or damaged.
    """
    store = Store(folder, memory_limit)
    try:
        sealing.restore(store, now)
    except BaseException:
        store.close()
        raise
    snapshot.clear(store)
    return store
