"""The import table of the architecture, held: what each package may import of ours."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EVERY = {"alerts", "collectors", "dashboards", "demo", "leverwatch", "pipeline", "queries"}
METRICS_AND_SEGMENTS = {"pipeline.metrics", "pipeline.segments"}
MAY = {
    "queries": set(),
    "collectors": {"queries"},
    "pipeline": {"queries"},
    "alerts": {"queries", *METRICS_AND_SEGMENTS},
    "dashboards": {"queries", *METRICS_AND_SEGMENTS},
    "demo": set(),
    "leverwatch": EVERY,
}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def allowed(package: str, name: str) -> bool:
    top = name.split(".")[0]
    if top not in EVERY or top == package:
        return True
    return any(name == word or name.startswith(f"{word}.") for word in MAY[package])


@pytest.mark.parametrize("package", sorted(EVERY))
def test_a_package_imports_only_what_the_table_allows(package: str) -> None:
    broken = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for name in imports(path)
        if not allowed(package, name)
    ]
    assert broken == []


def test_the_table_would_see_a_forbidden_import() -> None:
    assert not allowed("collectors", "pipeline.assemble.assemble")
    assert not allowed("demo", "collectors.decode")
    assert allowed("alerts", "pipeline.metrics.Metric")
    assert not allowed("alerts", "pipeline.measure.cells")


def test_only_queries_talks_to_the_database() -> None:
    users = {
        path.relative_to(ROOT).parts[0] for package in EVERY for path in (ROOT / package).rglob("*.py") if "duckdb" in set(imports(path))
    }
    assert users == {"queries"}
