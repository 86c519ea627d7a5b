"""Drawing in processes of its own: what hangs, ends or floods it costs a page nothing but that figure."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dashboards_rows
import httpx
import pytest
from dashboards_rows import NOW, StoreReader

from dashboards.easel import DrawingError, EaselLimits
from dashboards.kept_drawings import ENTRY_BYTES, Drawn, KeptDrawings
from dashboards.page import Asked
from dashboards.pages import segment
from dashboards.studio import CrowdedError, Studio, StudioLimits
from queries.sandbox import Sandbox
from queries.store import Store

ROOT = Path(__file__).parent.parent
TOO_LONG = f"drawing it took longer than {EaselLimits().drawing_s:g} s and was stopped"


def points(n: float, text: str = "x") -> str:
    """A figure of so many points."""
    x, y = ({"field": "x", "type": "quantitative", "title": title} for title in (text, "y"))
    return json.dumps({"data": {"sequence": {"start": 0, "stop": n, "as": "x"}}, "mark": "point", "encoding": {"x": x, "y": y}})


@pytest.fixture(scope="module")
def narrow() -> Iterator[Studio]:
    """A studio of one process with few drawings and one place, patient with a busy machine."""
    easel = EaselLimits(drawing_s=3.0, drawings=5)
    opened = Studio(StudioLimits(easels=1, page_s=60.0, downloads=1, easel=easel))
    yield opened
    opened.close()


def wait_until(told: Any) -> None:
    """Returns once that is so."""
    until_s = time.monotonic() + 30
    while not told():
        assert time.monotonic() < until_s
        time.sleep(0.02)


def ended(pid: int) -> bool:
    """Whether a process runs no more; one that nobody has waited for has ended too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] in ("Z", "X")
    except FileNotFoundError:
        return True


def test_a_figure_that_hangs_is_stopped_and_costs_the_others_of_its_page_nothing(narrow: Studio) -> None:
    narrow.svg(points(1))
    os.kill(narrow.easels[0].pid or 0, signal.SIGSTOP)
    hung, wrong, after = narrow.page([points(2, "hung"), '{"mark": "none"}', points(2, "after")])
    assert (hung.svg, hung.why) == (None, "drawing it took longer than 3 s and was stopped")
    assert wrong.why.startswith("it cannot be drawn: ")
    assert ">after<" in (after.svg or "")
    assert narrow.page([points(2, "hung")])[0].why == hung.why  # it is not tried again at once


def test_figures_for_which_a_page_has_no_time_left_say_so() -> None:
    (drawn,) = Studio(StudioLimits(page_s=0.0)).page([points(2)])
    assert (drawn.svg, drawn.why) == (None, "what was drawn before it took the 0 s that a page may take")


def test_a_process_that_ends_by_itself_is_followed_by_a_fresh_one(narrow: Studio) -> None:
    narrow.svg(points(3))
    pid = narrow.easels[0].pid
    assert pid is not None
    os.kill(pid, signal.SIGSEGV)
    with pytest.raises(DrawingError, match="the process that drew it ended with signal SIGSEGV"):
        narrow.svg(points(4))
    assert narrow.svg(points(5)).startswith("<svg")


def test_a_drawing_that_takes_more_memory_than_there_is_ends_its_process_alone() -> None:
    small = Studio(StudioLimits(easel=EaselLimits(drawing_s=30.0, memory_bytes=8 << 20)))
    with pytest.raises(DrawingError, match="the process that drew it ended with signal"):
        small.svg(points(30_000))
    small.close()


def test_a_process_inherits_nothing_and_is_followed_by_a_fresh_one_after_so_many_drawings(narrow: Studio) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        os.set_inheritable(listening.fileno(), True)
        pids, own = set(), Path(f"/proc/self/fd/{listening.fileno()}").readlink()
        for n in range(7):
            narrow.svg(points(10 + n))
            pids.add(narrow.easels[0].pid)
        here = Path(f"/proc/{narrow.easels[0].pid}")
        assert own not in {file.readlink() for file in (here / "fd").iterdir()}
    assert len(pids) == 2
    assert "PATH" not in {line.partition("=")[0] for line in (here / "environ").read_text(encoding="utf-8").split("\0")}
    assert (here / "cwd").readlink() == Path("/")


def test_a_process_ends_with_its_parent_however_that_ends() -> None:
    program = (
        "from dashboards.studio import Studio\nstudio = Studio()\n"
        f"studio.svg({points(2)!r})\nprint(studio.easels[0].pid, flush=True)\ninput()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not ended(pid)
        parent.kill()
    wait_until(lambda: ended(pid))


def test_a_studio_that_is_closed_ends_what_is_being_drawn_and_draws_nothing_any_more() -> None:
    studio = Studio(StudioLimits(easels=1))
    studio.svg(points(2))
    pid = studio.easels[0].pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    found = list[Drawn]()
    drawing = threading.Thread(target=lambda: found.extend(studio.page([points(3), points(4)])))
    drawing.start()
    wait_until(lambda: not studio._free)
    studio.close()
    drawing.join(30)
    assert [one.why for one in found][1:] == ["the server is closing"]
    assert found[0].svg is None
    assert ended(pid)


def test_the_same_figure_is_drawn_once(studio: Studio) -> None:
    one, other = studio.page([points(2)] * 2)
    assert one is other is studio.page([points(2)])[0]


def test_pages_come_before_downloads_and_what_gets_no_turn_says_so() -> None:
    studio, order = Studio(StudioLimits(easels=1)), list[str]()
    waiting = studio._changed._waiters  # type: ignore[attr-defined]
    threads = [
        threading.Thread(target=lambda: order.append(studio.svg("a download"))),
        threading.Thread(target=lambda: studio.page(["a page"])),
    ]
    with studio._easel(time.monotonic(), is_page=True) as easel:
        for number, thread in enumerate(threads):
            thread.start()
            wait_until(lambda expected=number + 1: len(waiting) == expected)
        easel.svg = lambda what, _: (order.append(what), what)[1]  # type: ignore[method-assign]
        with pytest.raises(CrowdedError, match="none became free within"), studio._easel(time.monotonic(), is_page=True):
            pass
    for thread in threads:
        thread.join(30)
    assert order == ["a page", "a download", "a download"]


def test_drawings_are_kept_up_to_so_many_bytes_and_failures_for_a_while() -> None:
    kept = KeptDrawings(3 * (ENTRY_BYTES + 100))
    for n in range(4):
        kept.keep(str(n), Drawn(f"{n}" * 100))
        kept.find("0", 0.0)
    assert [n for n in range(4) if kept.find(str(n), 0.0)] == [0, 2, 3]
    kept.keep("3", Drawn(None, "why"), until_s=60.0)
    assert (kept.find("3", 59.0), kept.find("3", 60.0)) == (Drawn(None, "why"), None)
    kept.keep("large", Drawn("x" * 5000))
    assert (kept.find("large", 0.0), kept.size_bytes) == (None, 0)


def test_more_downloads_than_there_are_places_for_are_told_to_come_again(page_sandbox: Sandbox, narrow: Studio) -> None:
    with dashboards_rows.serving(page_sandbox, narrow) as address, httpx.Client(base_url=address, timeout=60) as client:
        with narrow.place():
            refused = client.get("/figure/segment/gain.png")
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert refused.json()["error"]["code"] == "busy"
            assert client.get("/figure/segment/gain.csv").status_code == 200
            assert 'class="chart"' in client.get("/segment").text
        assert client.get("/figure/segment/gain.png").content.startswith(b"\x89PNG")


def test_a_figure_that_is_not_drawn_says_why_in_its_place_and_shows_its_numbers(page_store: Store, narrow: Studio) -> None:
    asked = Asked(StoreReader(page_store), {}, NOW, path="/segment", studio=narrow)
    for figure in segment.figures(asked):
        narrow.kept.keep(figure.drawing or "", Drawn(None, TOO_LONG))
    html = segment.draw(asked)
    assert f"Not drawn: {TOO_LONG}. Its numbers stand below." in html
    assert '<details id="numbers-gain" open>' in html
    assert 'class="chart"' not in html
