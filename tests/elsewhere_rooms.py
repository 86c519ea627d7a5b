"""A data folder with the pages' made-up rows, their cells and verdicts, and its whole web application in this process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import dashboards_rows
import httpx
from dashboards_rows import NOW
from fastapi import FastAPI

from alerts.couriers import Couriers
from collectors.door import Door, reference_check
from leverwatch import app
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from leverwatch.receiving import Receiving
from leverwatch.worker import Worker
from pipeline import cell_store

POLICY = "speculation-net-itl"  # the shipped one, under whose name the made-up verdicts stand


@contextmanager
def opened_empty(folder: Path, now: datetime = NOW) -> Iterator[EngineRoom]:
    """A folder that nothing was sent to."""
    opened = EngineRoom(folder, Config(), clock=lambda: now)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def room(folder: Path, now: datetime = NOW) -> Iterator[EngineRoom]:
    """The folder, opened and filled with the day before NOW."""
    with opened_empty(folder, now) as opened:
        fill(opened)
        yield opened


def fill(opened: EngineRoom) -> None:
    """Writes the rows, the cells of all requests, and that every block up to NOW is closed and judged."""
    dashboards_rows.fill(opened.store)
    with opened.store.write() as transaction:
        requests = transaction.frame("from requests_hot")
        cell_store.add(transaction, opened.measured(requests))
        transaction.execute("insert into closed_blocks values ($until, true)", {"until": NOW - timedelta(minutes=5)})
        transaction.execute("update current_verdicts set policy = $policy", {"policy": POLICY})
        row = {"policy": POLICY, "at": NOW}
        transaction.execute("insert into policies values ($policy, '1', 'speculation', 'nobody', '{}', $at, false)", row)


def application(opened: EngineRoom) -> FastAPI:
    """Everything that its port answers, without any thread of a running server."""
    couriers = Couriers(opened.store, opened.config.receivers, opened.clock, os.environ)
    door = Door(opened.spool, lambda: round(NOW.timestamp() * 1e9), opened.loader.note, reference_check, waiting=opened.loader.waiting)
    return app.pages(opened, Worker(opened, couriers), couriers, None, Receiving.through(door, opened.config.scrape, 4318))


def ask(application: FastAPI, method: str, path: str, **what: Any) -> httpx.Response:
    """What the application answers to one call."""

    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(application, client=("127.0.0.1", 4000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080") as client:
            return await client.request(method, path, **what)

    return asyncio.run(asked())


def environment() -> dict[str, str]:
    """What a child process needs to find the modules that these tests run."""
    return {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME") if name in os.environ}
