"""Compiled kernels are kept under a digest of all their sources: a change in one file leaves no stale code in another."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors import jit


def sources(folder: Path, text: str) -> None:
    (folder / "wire.py").write_text("from wire_fields import field", encoding="utf-8")
    (folder / "wire_fields.py").write_text(text, encoding="utf-8")


def test_a_change_in_any_kernel_file_moves_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "HERE", tmp_path)
    sources(tmp_path, "field = 1")
    before = jit.cache_folder()
    sources(tmp_path, "field = 2")
    assert jit.cache_folder() != before
    sources(tmp_path, "field = 1")
    assert jit.cache_folder() == before


def test_a_read_only_installation_keeps_its_kernels_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "HERE", tmp_path)
    monkeypatch.setattr(jit.os, "access", lambda *_: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert jit.cache_folder().parent == tmp_path / "cache" / "leverwatch"
