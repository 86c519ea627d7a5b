"""Tasks in, their outcomes out, as they end: done one after the other in this process, or by Ray on as many as it has."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from queries.lake import LakeError

OBJECTS_BYTES = 80 * 1024 * 1024  # what Ray may keep of arguments and answers in memory: both are small
TRIES = 3
ONE_THREAD = dict.fromkeys(("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
MISSING = "`leverwatch work` runs its tasks on Ray, which is not installed: pip install 'leverwatch[cluster]'; --workers 0 does without"


class RayMissingError(ImportError):
    """Ray is not installed; says what to do."""


class PoolError(RuntimeError):
    """Ray cannot be started or reached; says why."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one task: its arguments, and its answer, or why there is none. `elapsed_s` is what it took where it ran, if known."""

    task: tuple[Any, ...]
    answer: Any = None
    error: str = ""
    elapsed_s: float = 0.0


class Pool(Protocol):
    """Whatever runs tasks."""

    workers: int

    def run(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Iterator[Outcome]:
        """Runs a function with each of some tuples of arguments, in any order."""
        ...

    def close(self) -> None:
        """Lets everything go."""


class Here:
    """This process, one task after the other."""

    workers = 0

    def run(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Iterator[Outcome]:
        """Runs a function with each of some tuples of arguments, in order."""
        for task in tasks:
            began_s = time.perf_counter()
            try:
                answer = function(*task)
            except Exception as error:  # one that fails holds up no other, and is tried again in the next round
                yield Outcome(task, error=_said(error), elapsed_s=time.perf_counter() - began_s)
            else:
                yield Outcome(task, answer, elapsed_s=time.perf_counter() - began_s)

    def close(self) -> None:
        """Nothing is held."""


class Cluster:
    """Ray: a machine's own, with as many workers as asked for, or the cluster at an address. A task whose worker dies is begun anew."""

    def __init__(self, address: str | None, workers: int | None) -> None:
        try:
            import ray
        except ImportError as error:
            raise RayMissingError(MISSING) from error
        self._ray: Any = ray
        shared: dict[str, Any] = {"log_to_driver": False, "logging_level": "warning", "include_dashboard": False}
        own = {} if address else {"num_cpus": workers, "object_store_memory": OBJECTS_BYTES}
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            ray.init(address=address, runtime_env={"env_vars": ONE_THREAD}, **(shared | own))
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            msg = f"Ray{f' at {address}' if address else ''} cannot be used: {' '.join(str(error).split())}"
            raise PoolError(msg) from error
        self.workers = int(self._ray.cluster_resources().get("CPU", 1))

    def run(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Iterator[Outcome]:
        """Runs a function with each of some tuples of arguments, beside each other; gives them as they end."""
        remote = self._ray.remote(num_cpus=1, max_retries=TRIES, retry_exceptions=[LakeError, OSError])(_timed)
        waiting = {remote.remote(function, task): task for task in tasks}
        while waiting:
            ended, _ = self._ray.wait(list(waiting), num_returns=1)
            for one in ended:
                task = waiting.pop(one)
                try:
                    yield Outcome(task, *self._ray.get(one))
                except Exception as error:  # as above
                    yield Outcome(task, error=_said(error))

    def close(self) -> None:
        """Ends a Ray of our own, or leaves the cluster."""
        self._ray.shutdown()


def _timed(function: Callable[..., Any], task: tuple[Any, ...]) -> tuple[Any, str, float]:
    """What a function answers, that there is no error, and how long it took, by the clock of the machine that it runs on."""
    began_s = time.perf_counter()
    return function(*task), "", time.perf_counter() - began_s


def _said(error: Exception) -> str:
    cause = getattr(error, "cause", None) or error
    return f"{type(cause).__name__}: {' '.join(str(cause).split())}"[:500]
