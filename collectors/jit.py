"""How the wire kernels are compiled: by Numba, without the GIL, kept for the next process under a digest of their sources.

Numba itself looks only at the file a kernel stands in, and kernels call each other across files: a change in one must
not leave another's compiled code behind.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
HERE = Path(__file__).parent
PREFIX = "kernels-"


def jit(function: Kernel) -> Kernel:
    """The function as a kernel that is compiled at its first call and runs without the GIL."""
    return cast("Kernel", numba.njit(cache=True, nogil=True, boundscheck=False)(function))


def cache_folder() -> Path:
    """Where compiled kernels of these sources are kept: beside the modules, in the user's cache where that is read-only."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(HERE.glob("wire*.py")):
        digest.update(path.read_bytes())
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "leverwatch"
    base = HERE / "__pycache__" if os.access(HERE, os.W_OK) else user
    return base / f"{PREFIX}{digest.hexdigest()[:16]}"


def _use(folder: Path) -> None:
    if folder.is_dir():
        return
    for old in folder.parent.glob(f"{PREFIX}*"):
        shutil.rmtree(old, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)


if "NUMBA_CACHE_DIR" not in os.environ:
    _use(cache_folder())
    setattr(config, "CACHE_DIR", str(cache_folder()))  # noqa: B010  a name that Numba's own table makes
