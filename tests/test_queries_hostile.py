"""Some ninety hostile statements: each is refused, or ends at a limit, and reads and writes nothing outside the store's own tables."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import collectors_bodies
import hostile_statements as hostile
import pytest

from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from queries.sandbox import Sandbox, SqlError, SqlLimits

SECRET = "owner-only-4711"
ROOT = Path(__file__).parent.parent
QUICK = {
    "files": (hostile.READS_FILES, hostile.REFUSED),
    "network": (hostile.NETWORK, hostile.REFUSED),
    "writes": (hostile.WRITES, hostile.REFUSED),
    "settings": (hostile.SETTINGS, hostile.REFUSED),
    "disguised": (hostile.DISGUISED, hostile.REFUSED),
    "memory": (hostile.MEMORY, hostile.TOO_MUCH),
    "nested": (hostile.NESTED, hostile.TOO_MUCH | {"answered"}),
    "told": (hostile.TELLS, hostile.HARMLESS),
}


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineRoom]:
    opened = EngineRoom(tmp_path_factory.mktemp("data"), Config())
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def file(room: EngineRoom) -> Path:
    """A file beside those that the child may read."""
    made = room.folder / "parts" / "secret.parquet"
    made.write_text(SECRET)
    return made


def _asked(room: EngineRoom, statements: list[str]) -> list[list[str]]:
    """The code and message or rows of each, from one child under the sandbox's own limits."""
    sandbox = room.sandbox
    with sandbox.runs.on_their_way(None, 100, 120.0) as run, sandbox._copies.lease(["flips"]) as files:
        job: dict[str, Any] = json.loads(sandbox._job("", None, run, files))
    asked = json.dumps([{**job, "output_bytes": 1 << 22}, statements])
    child = subprocess.run(
        [sys.executable, "-B", str(ROOT / "tests" / "hostile_child.py")],
        input=asked, capture_output=True, text=True, timeout=200, cwd="/", env={"PYTHONPATH": str(ROOT), "MALLOC_ARENA_MAX": "1"},
    )  # fmt: skip
    assert child.returncode == 0, child.stderr[-2000:]
    return [json.loads(line) for line in child.stdout.splitlines()]


def _files(room: EngineRoom) -> list[Path]:
    """Everything in the data folder but what the owner's own work makes and remakes."""
    return sorted(path for path in room.folder.rglob("*") if not {"spool", "hot"} & set(path.parts))


def test_what_is_hostile_is_refused_or_ends_at_a_limit(room: EngineRoom, file: Path) -> None:
    before = _files(room)
    asked = [
        (group, one.replace("{file}", str(file)).replace("{{", "{").replace("}}", "}"))
        for group, (many, _) in QUICK.items()
        for one in many
    ]
    asked.sort(key=lambda one: one[0] in {"memory", "nested"})  # last: they are all asked of one process, and leave less of it
    answers = _asked(room, [statement for _, statement in asked])
    assert len(answers) == len(asked) > 80
    wrong = [
        (group, statement[:80], code, said[:200])
        for (group, statement), (code, said) in zip(asked, answers, strict=True)
        if code not in QUICK[group][1] or SECRET in said or "root:" in said
    ]
    assert wrong == []
    assert file.read_text() == SECRET
    assert _files(room) == before


def test_what_never_ends_is_stopped_within_its_limit_while_exports_are_stored(room: EngineRoom) -> None:
    sandbox = Sandbox(room.store, SqlLimits(wall_s=1.0, at_once=2, wait_s=60.0))
    codes: dict[str, str] = {}

    def ask(statement: str) -> None:
        try:
            sandbox.run(statement)
            codes[statement] = "answered"
        except SqlError as error:
            codes[statement] = error.code

    asking = [threading.Thread(target=ask, args=(statement,)) for statement in hostile.ENDLESS]
    for thread in asking:
        thread.start()
    sent = 0
    while any(thread.is_alive() for thread in asking):
        body = collectors_bodies.body(*(collectors_bodies.span(1 + sent + n) for n in range(50)))
        room.spool.append("traces", "sender", collectors_bodies.START, body).result(10)
        sent += 50
        room.work_once()
    assert codes == dict.fromkeys(hostile.ENDLESS, "time_limit")
    while room.work_once():
        pass
    assert room.store.rows("select count(*) as n from spans") == [{"n": sent}]
    assert sent >= 50
    sandbox.close()
