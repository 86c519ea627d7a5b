"""What several test files ask for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import store_copies

from dashboards.studio import Studio
from queries import fresh_parts
from queries import store as store_module
from queries.sandbox import Sandbox, SqlLimits
from queries.store import Store

if TYPE_CHECKING:
    from alert_letters import Hook
    from playwright.sync_api import Browser

COSTLY = (
    "test_demo_truths",
    "test_leverwatch_demo",
    "test_leverwatch_wheel",
    "test_leverwatch_serve",
    "test_pipeline_assemble_properties",
    "test_queries_migrating",
    "test_demo_advice",
)
"""The files that take longest, longest first: begun last, one of them would keep one worker while the others have nothing to do."""
RECORDINGS = Path(__file__).parents[1] / "../shared/data/otlp"


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The folder of recorded exports, one folder a recording."""
    if not RECORDINGS.is_dir():
        pytest.skip(f"no recordings beside the checkout: {RECORDINGS}")
    return RECORDINGS


@pytest.fixture(scope="session", autouse=True)
def _stores_are_copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """New stores of this process are copies of one; tests of opening itself ask for `_whole_schema`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "_open_migrated", store_copies.opener(tmp_path_factory.mktemp("template") / "live.duckdb"))
        yield


@pytest.fixture
def _whole_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """New stores run every step of the schema, as they do outside of tests."""
    monkeypatch.setattr(store_module, "_open_migrated", store_copies.OPEN)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store of this test alone."""
    opened = Store(tmp_path)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store that tests of a module empty in turn (`notice_rows.emptied`), which is sooner done than opening one."""
    opened = Store(tmp_path_factory.mktemp("kept"))
    yield opened
    opened.close()


@pytest.fixture
def hook() -> Iterator[Hook]:
    """A receiver on loopback."""
    import alert_letters

    with alert_letters.hook() as opened:
        yield opened


@pytest.fixture(scope="session")
def studio() -> Iterator[Studio]:
    """Who draws the figures of pages: one for all tests, since its process takes half a second to start."""
    opened = Studio()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real browser; one a module, since its loop would be in the way of what other modules run."""
    import browser_pages  # here: most tests need neither a browser nor pages

    with browser_pages.opened() as opened:
        yield opened


@pytest.fixture(scope="module")
def page_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with the pages' made-up rows, of this module alone."""
    import dashboards_rows

    with dashboards_rows.filled(tmp_path_factory.mktemp("data")) as opened:
        yield opened


@pytest.fixture(scope="module")
def page_sandbox(page_store: Store) -> Iterator[Sandbox]:
    """The SQL sandbox over that store, patient with a busy machine."""
    opened = Sandbox(page_store, SqlLimits(wall_s=30.0))
    yield opened
    opened.close()


@pytest.fixture(params=[fresh_parts.MIN_ROWS, 1], ids=["hot", "parts"])
def _batches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaded and assembled rows go into the hot tables, as few do, then into part files, as many do: the answers are the same."""
    monkeypatch.setattr(fresh_parts, "MIN_ROWS", request.param)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden` rewrites what golden tests compare with, `--long` runs what takes minutes."""
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files from what the code gives now")
    parser.addoption("--long", action="store_true", help="run the tests that take minutes too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Costly files go first, and what takes minutes is left out, unless it is asked for."""
    items.sort(key=lambda item: COSTLY.index(item.path.stem) if item.path.stem in COSTLY else len(COSTLY))
    if config.getoption("--long"):
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="takes minutes: `make test-long` runs it"))


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--update-golden"))
