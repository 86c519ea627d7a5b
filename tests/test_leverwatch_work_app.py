"""A worker that is given a port answers there, behind the configured tokens, and tells rounds that do not go through."""

from __future__ import annotations

import functools
from pathlib import Path

import httpx
import pytest

from leverwatch import config, work_app
from leverwatch.exposure import ExposedError
from leverwatch.observe.observer import Observer

TOKEN = "a-token-of-many-letters"


def test_the_port_has_the_numbers_of_rounds_for_those_who_may_read(tmp_path: Path) -> None:
    (tmp_path / "leverwatch.toml").write_text(f'[access]\nread = [{{ token = "{TOKEN}" }}]\n')
    observer = Observer()
    with pytest.raises(OSError, match="gone"), observer.work_round():
        raise OSError("the lake is gone")
    listening = work_app.Listening(config.read(None, tmp_path, {}), 0, functools.partial(work_app.families, observer))
    url = listening.start()
    try:
        assert httpx.get(f"{url}/healthz", timeout=30).status_code == 200
        assert httpx.get(f"{url}/metrics", timeout=30).status_code == 401
        shown = httpx.get(f"{url}/metrics", headers={"authorization": f"Bearer {TOKEN}"}, timeout=30).text
    finally:
        listening.stop()
    assert 'leverwatch_work_rounds_total{outcome="failed"} 1.0' in shown
    assert 'process="work"' in shown


def test_a_port_beyond_loopback_without_a_token_is_refused(tmp_path: Path) -> None:
    open_config = config.read(None, tmp_path, {"LEVERWATCH_SERVE_HOST": "0.0.0.0"})
    with pytest.raises(ExposedError):
        work_app.Listening(open_config, 0, functools.partial(work_app.families, Observer()))
