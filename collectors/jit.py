"""How the wire kernels are compiled: Numba without the GIL, cached in a folder of the caller's choice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def jit(function: Kernel) -> Kernel:
    """The function as a kernel that is compiled at its first call and runs without the GIL."""
    return cast("Kernel", numba.njit(cache=True, nogil=True, boundscheck=False)(function))


def cache_in(folder: Path) -> None:
    """Sets where compiled kernels are kept. To be called before the kernels' module is imported."""
    folder.mkdir(parents=True, exist_ok=True)
    config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]  # set by Numba from its environment table
