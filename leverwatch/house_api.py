"""What a data folder holds and what was dropped from it, and its snapshots, over HTTP."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import APIRouter
from fastapi.responses import JSONResponse

from leverwatch import snapshot
from leverwatch.engine_room import EngineRoom
from leverwatch.snapshot_files import SnapshotError

NEWEST_DROPS = "select * from retention_log order by dropped_at desc, since desc limit 100"


def router(room: EngineRoom) -> APIRouter:
    """`GET /api/storage` and `POST /api/snapshots`."""
    routes = APIRouter(tags=["house"])

    @routes.get("/api/storage")
    def storage() -> dict[str, Any]:
        """What each relation and folder holds, the disk's free space, and the newest drops of retention."""
        return stored(room)

    @routes.post("/api/snapshots")
    def snapshots() -> JSONResponse:
        """Stages a consistent copy inside the data folder, for `leverwatch snapshot` to fetch within the hour."""
        try:
            folder, manifest = snapshot.stage(room)
        except SnapshotError as error:
            told = {"code": "busy", "message": str(error), "hint": "wait until it is done"}
            return JSONResponse({"error": told}, status_code=409)
        except OSError as error:
            told = {"code": "failed", "message": str(error), "hint": "see the space left, and warnings in /readyz"}
            return JSONResponse({"error": told}, status_code=500)
        return JSONResponse({"folder": str(folder), "manifest": msgspec.to_builtins(manifest)})

    return routes


def stored(room: EngineRoom) -> dict[str, Any]:
    """What each relation and folder holds, the disk's free space, and the newest drops of retention."""
    return {
        "holdings": room.house.holdings(),
        "free_bytes": room.house.free_bytes(),
        "min_free_bytes": room.config.retention.min_free_bytes,
        "dropped": room.store.rows(NEWEST_DROPS),
    }
