"""Statements on their way: their ids, an end to them at once, and limits of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from queries.runs import RunIdError, Runs, checked
from queries.sandbox import Sandbox, SqlError, SqlLimits
from queries.store import Store

NEVER_ENDS = "select count(*) from range(1000000) a, range(1000000) b, range(1000000) c"


@pytest.fixture
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    store = Store(tmp_path_factory.mktemp("data"))
    opened = Sandbox(store, SqlLimits(wall_s=20.0, most_wall_s=30.0, at_once=1))
    yield opened
    opened.close()
    store.close()


class _Asking:
    """A statement asked in a thread of its own, known once it is on its way."""

    def __init__(self, sandbox: Sandbox, run_id: str, sql: str) -> None:
        self.error: SqlError | None = None
        self._arguments = sandbox, run_id, sql
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        sandbox, run_id, sql = self._arguments
        try:
            sandbox.run(sql, run_id=run_id)
        except SqlError as error:
            self.error = error

    def end(self) -> str:
        self._thread.join(10)
        return self.error.code if self.error else "answered"


def _when(sandbox: Sandbox, run_id: str, *, is_waiting: bool) -> None:
    until_s = time.monotonic() + 10
    while (run := sandbox.runs.find(run_id)) is None or run.is_waiting is not is_waiting:
        assert time.monotonic() < until_s
        time.sleep(0.01)


def test_a_statement_is_stopped_at_once_whether_it_runs_or_waits(sandbox: Sandbox) -> None:
    running = _Asking(sandbox, "first", NEVER_ENDS)
    _when(sandbox, "first", is_waiting=False)
    waiting = _Asking(sandbox, "second", "select 1")
    _when(sandbox, "second", is_waiting=True)
    with pytest.raises(SqlError, match="a statement with the id first is running"):
        sandbox.run("select 1", run_id="first")
    assert sandbox.runs.stop("second")
    assert waiting.end() == "cancelled"
    started_s = time.monotonic()
    assert sandbox.runs.stop("first")
    assert running.end() == "cancelled"
    assert time.monotonic() - started_s < 5
    assert not sandbox.runs.stop("first")
    assert sandbox.run("select 1 as a", run_id="first").rows() == [[1]]  # the place is free, and so is the id


def test_a_statement_may_ask_for_other_limits_up_to_the_most(sandbox: Sandbox) -> None:
    with pytest.raises(SqlError) as caught:
        sandbox.run(NEVER_ENDS, limit_s=0.5)
    assert (caught.value.code, caught.value.message) == ("time_limit", "the statement ran longer than 0.5 s and was stopped")
    assert "or ask for more time: limit_s, up to 30" in caught.value.hint
    for wrong in (0.0, -1.0, 30.1, float("nan"), float("inf")):
        with pytest.raises(SqlError, match=r"limit_s .*: above 0 and up to 30 s are taken"):
            sandbox.run("select 1", limit_s=wrong)


def test_a_run_that_was_stopped_before_its_child_began_ends_it(sandbox: Sandbox) -> None:
    class Child:
        killed = 0

        def kill(self) -> None:
            self.killed += 1

    child = Child()
    with sandbox.runs.on_their_way("x", 1, 1.0) as run:
        run.stop()
        run.holds(child)  # type: ignore[arg-type]
    assert child.killed == 1


@pytest.mark.parametrize("run_id", ["", "a" * 65, "a b", "a/b", "ä", "a\n", "../x"])
def test_an_id_of_other_characters_is_refused(run_id: str) -> None:
    with pytest.raises(RunIdError, match="1 to 64 letters, digits and hyphens are taken"):
        checked(run_id)


def test_a_run_is_forgotten_when_its_block_ends_in_an_error() -> None:
    runs = Runs()
    with pytest.raises(ZeroDivisionError), runs.on_their_way("x", 1, 1.0):
        raise ZeroDivisionError
    assert runs.find("x") is None
