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
