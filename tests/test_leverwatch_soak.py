"""A server under load for an hour, with pages and notices in use: memory stays flat, nothing is lost, every page answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long
SOAK = Path(__file__).resolve().parent.parent / "benchmarks" / "soak.py"
MINUTES, RATE = (os.environ.get(f"LEVERWATCH_TEST_SOAK_{name}", usual) for name, usual in (("MINUTES", "60"), ("RATE", "20000")))
SLACK_MIB = 100  # what a page's drawing or a compaction may hold just then


def test_an_hour_of_load_loses_nothing_and_memory_stays_flat_after_warm_up(tmp_path: Path) -> None:
    out = tmp_path / "soak.json"
    told = subprocess.run(
        [sys.executable, SOAK, "--minutes", MINUTES, "--rate", RATE, "--out", out], capture_output=True, text=True, check=True
    )
    sys.stdout.write(told.stdout)
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["failures"] == []
    assert found["acknowledged"] == found["spans"] == found["requests"] > 0
    assert found["rate"] > 0.95 * float(RATE)
    assert found["notices"] >= int(0.8 * float(MINUTES))
    if float(MINUTES) >= 30:
        assert found["last_mib"] <= 1.1 * found["first_mib"] + SLACK_MIB
