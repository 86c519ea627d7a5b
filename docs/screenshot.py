"""The demo's Overview in, `docs/images/overview.png` out: plays the demo until its webhook came, or takes what `--url` serves.

`make screenshot` runs it. It takes Chromium and a few minutes, in which 20 hours of a simulated fleet are loaded and judged.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import browser_pages  # of tests/

TARGET = Path(__file__).parent / "images/overview.png"
WIDTH, HEIGHT = 1440, 900
LIMIT_S = 900
ABOVE = "text=Since yesterday"  # the picture ends above this heading


@contextmanager
def played() -> Iterator[str]:
    """The address of a demo whose first notice is out. Raises RuntimeError where it ends before."""
    command = [sys.executable, "-u", "-m", "leverwatch.cli.main", "demo", "--port", "0", "--for", str(LIMIT_S)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield _address(process)
        finally:
            process.terminate()


def _address(process: subprocess.Popen[str]) -> str:
    address = ""
    for line in process.stdout or ():
        address = address or "".join(re.findall(r"http://127\.0\.0\.1:\d+", line)[:1])
        if line.startswith("webhook lever.disable"):
            return address
    msg = f"the demo ended within {LIMIT_S} s without a notice"
    raise RuntimeError(msg)


def take(address: str, target: Path) -> None:
    """Writes the upper part of the Overview, down to the end of its table."""
    with browser_pages.opened() as browser:
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(f"{address}/", wait_until="networkidle")
        box = page.locator(ABOVE).first.bounding_box()
        height = min(HEIGHT, box["y"] - 12) if box else HEIGHT
        page.screenshot(path=target, clip={"x": 0, "y": 0, "width": WIDTH, "height": height}, full_page=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="a server that shows what is wanted already")
    parser.add_argument("--out", type=Path, default=TARGET)
    given = parser.parse_args()
    if given.url:
        take(given.url, given.out)
    else:
        with played() as shown:
            take(shown, given.out)
