"""A server's memory is given from what was freed; where the C library knows no such setting, nothing breaks."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from leverwatch import allocator

ASKED = "from leverwatch import allocator; import pyarrow; print(allocator.keep_freed_memory(), pyarrow.default_memory_pool().backend_name)"


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="this C library has no mallopt")
def test_a_process_takes_the_settings() -> None:
    told = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, check=True, timeout=60).stdout
    assert told.split() == ["True", "system"]


def test_a_c_library_without_them_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda _: object())
    monkeypatch.setattr(allocator.pa, "set_memory_pool", lambda _: None)
    assert allocator.keep_freed_memory() is False
