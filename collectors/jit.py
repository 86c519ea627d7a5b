"""How the wire kernels are compiled: Numba without the GIL, cached beside the modules, or in the user's cache where that is read-only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def jit(function: Kernel) -> Kernel:
    """The function as a kernel that is compiled at its first call and runs without the GIL."""
    return cast("Kernel", numba.njit(cache=True, nogil=True, boundscheck=False)(function))
