"""Addresses of collectors and numbers of spans in, exports that are sent until each is acknowledged out: run on a host of its own.

`python hosts_sender.py START_S FIRST COUNT LIMIT_S URL...` says `not acknowledged` at the first that is refused or lost, at its end how
many were, and ends with 1 where time ran out.
"""

from __future__ import annotations

import itertools
import sys
import time

import httpx
from collectors_bodies import attribute, body, span

SPANS = 64  # an export
WAIT_S = 5.0


def export(start_s: int, first: int) -> bytes:
    """One span a request, 64 in a second, of two replicas in turn."""
    begins = [1_000_000_000 * start_s + 15_000_000 * (first + number) for number in range(SPANS)]
    model = [attribute("gen_ai.response.model", "m")]
    spans = [
        span(first + number, start_time_unix_nano=at, end_time_unix_nano=at + 500_000_000, attributes=model)
        for number, at in enumerate(begins)
    ]
    return body(*spans, service__instance__id=f"r{first // SPANS % 2}")


def main(start_s: int, first: int, count: int, limit_s: float, urls: list[str]) -> int:
    """Sends, and asks the next collector where one does not acknowledge."""
    until, failed, turns = time.monotonic() + limit_s, 0, itertools.cycle(urls)
    for number in range(first, first + count, SPANS):
        content = export(start_s, number)
        while not _is_taken(f"{next(turns)}/v1/traces", content):
            failed += 1
            if failed == 1:
                sys.stdout.write("not acknowledged\n")
                sys.stdout.flush()
            if time.monotonic() > until:
                return 1
            time.sleep(0.2)
    sys.stdout.write(f"{failed}\n")
    return 0


def _is_taken(url: str, content: bytes) -> bool:
    try:
        return httpx.post(url, content=content, headers={"content-type": "application/x-protobuf"}, timeout=WAIT_S).status_code == 200
    except httpx.HTTPError:
        return False


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:4]), float(sys.argv[4]), sys.argv[5:]))  # type: ignore[arg-type]
