"""What several test files ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

RECORDINGS = Path(__file__).parents[1] / "../shared/data/otlp"


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The folder of recorded exports, one folder a recording."""
    if not RECORDINGS.is_dir():
        pytest.skip(f"no recordings beside the checkout: {RECORDINGS}")
    return RECORDINGS


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden` rewrites what golden tests compare with."""
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files from what the code gives now")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--update-golden"))
