"""The wheel in empty environments, one for each Python that it says it runs on: what it asks for can be had, and it serves and plays."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from wheel_made import EXPORT, ROOT, alone, built, environment, python_of, run

from leverwatch.version import __version__

pytestmark = pytest.mark.long
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = [found[1] for line in PROJECT["classifiers"] if (found := re.search(r"Python :: (3\.\d+)$", line))]
EXTRAS = sorted(set(PROJECT["optional-dependencies"]) - {"dev", "bench"})
PATIENCE_S = 240


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("made"))[1]


@pytest.fixture(scope="module", params=PYTHONS)
def scripts(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The console scripts of an environment that holds the wheel and what it asks for."""
    python = python_of(request.param)
    if python is None:
        pytest.skip(f"no Python {request.param} on this machine")
    return alone(tmp_path_factory.mktemp("alone") / "venv", python, wheel)


@contextmanager
def started(at: Path, *command: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A command that runs until the block ends, or for as long as anyone is patient."""
    words = [str(word) for word in command]
    plain = environment(PYTHONUNBUFFERED="1")
    process = subprocess.Popen(words, cwd=at, env=plain, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    ender = threading.Timer(PATIENCE_S, process.kill)
    ender.start()
    try:
        yield process
    finally:
        ender.cancel()
        process.terminate()
        process.communicate(timeout=60)


def test_it_loads_reports_and_serves_a_page(scripts: Path, tmp_path: Path) -> None:
    leverwatch = scripts / "leverwatch"
    assert run(leverwatch, "--version", at=tmp_path).split() == ["leverwatch", __version__]
    (tmp_path / "one.json").write_text(json.dumps(EXPORT), encoding="utf-8")
    assert run(leverwatch, "load", "one.json", "--data", "store", at=tmp_path).startswith("1 span stored")
    ports = ("--port", "0", "--grpc-port", "0", "--otlp-http-port", "0")
    with started(tmp_path, leverwatch, "serve", "--data", "store", *ports) as served:
        assert served.stdout is not None
        url = next(found[0] for line in served.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+/?", line)))
        page = httpx.get(url, follow_redirects=True, timeout=60)
        assert page.status_code == 200
        styles = re.findall(r'href="(assets/[^"]+\.css)"', page.text)
        assert styles
        assert all(httpx.get(f"{url.rstrip('/')}/{path}").status_code == 200 for path in styles)
        assert httpx.get(f"{url.rstrip('/')}/healthz").status_code == 200


def test_the_demo_plays(scripts: Path, tmp_path: Path) -> None:
    leverwatch = scripts / "leverwatch"
    assert "batch-grows" in run(leverwatch, "demo", "--list", at=tmp_path)
    with started(tmp_path, leverwatch, "demo", "--port", "0", "--for", str(PATIENCE_S), "--data", "demo") as played:
        assert played.stdout is not None
        assert any("history sent" in line for line in played.stdout)


@pytest.mark.parametrize("version", PYTHONS)
def test_the_extras_can_be_had_together(version: str, wheel: Path, tmp_path: Path) -> None:
    python = python_of(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    scripts = alone(tmp_path / "venv", python, wheel, *EXTRAS)
    for command in ("collect", "work", "mcp"):
        run(scripts / "leverwatch", command, "--help", at=tmp_path)
    run(scripts / "python", "-c", "import confluent_kafka, deltalake, mcp, ray", at=tmp_path)
