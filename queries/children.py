"""A program of ours in, a process of its own out that inherits nothing: no environment, no files or sockets, no folder, no terminal.

It is started anew and never forked, since a process with threads has locks that a copy of it would wait for without an end. Its three
streams are pipes; once its parent is gone, however that ended, it reads the end of its input.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

# One malloc arena and the system allocator keep the address space of a statement small: 370 MB before it, of the 1 GiB that it may have.
_ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "OPENBLAS_NUM_THREADS": "1",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    **{name: os.environ[name] for name in ("LD_LIBRARY_PATH", "TZDIR") if name in os.environ},
}


def started(*program: str) -> subprocess.Popen[bytes]:
    """The process of a program: a file, or `-m` and a module, and what it is told. Raises OSError where the system starts none."""
    return subprocess.Popen(  # noqa: S603 - programs of ours alone
        [sys.executable, "-I", "-B", *program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        env=_ENVIRONMENT,
        close_fds=True,
        start_new_session=True,
    )


def how_it_ended(status: int, errors: str = "") -> str:
    """How a process ended without an answer, in words, with the last line of what it complained of."""
    said = f": {errors.strip().splitlines()[-1]}" if errors.strip() else ""
    return f"{f'signal {signal.Signals(-status).name}' if status < 0 else f'status {status}'}{said}"
