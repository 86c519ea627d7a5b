"""What several test files ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

from queries import fresh_parts

RECORDINGS = Path(__file__).parents[1] / "../shared/data/otlp"


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The folder of recorded exports, one folder a recording."""
    if not RECORDINGS.is_dir():
        pytest.skip(f"no recordings beside the checkout: {RECORDINGS}")
    return RECORDINGS


@pytest.fixture(params=[fresh_parts.MIN_ROWS, 1], ids=["hot", "parts"])
def _batches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaded and assembled rows go into the hot tables, as few do, then into part files, as many do: the answers are the same."""
    monkeypatch.setattr(fresh_parts, "MIN_ROWS", request.param)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden` rewrites what golden tests compare with, `--long` runs what takes minutes."""
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files from what the code gives now")
    parser.addoption("--long", action="store_true", help="run the tests that take minutes too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what takes minutes, unless it is asked for."""
    if config.getoption("--long"):
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="takes minutes: `make test-long` runs it"))


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--update-golden"))
