"""The wheel, made from the source distribution, carries its data, names what it imports, and works outside of the checkout."""

from __future__ import annotations

import ast
import email
import importlib.metadata
import json
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from wheel_made import EXPORT, ROOT, beside, built, run

from leverwatch.version import __version__

PACKAGES = ("alerts", "collectors", "dashboards", "demo", "leverwatch", "pipeline", "queries")
COME_WITH = {"starlette": "fastapi", "pydantic": "fastapi", "mcp_types": "mcp"}
"""What is imported as part of another package's interface, and comes with it."""
ASKED_FOR = re.compile(r"^[A-Za-z0-9._-]+")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return built(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="module")
def scripts(made: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Console scripts of an environment with the wheel. `make test-long` has empty ones, into which all that it asks for is installed."""
    return beside(tmp_path_factory.mktemp("beside") / "venv", made[1])


def test_the_wheel_has_every_file_of_its_packages_and_no_other(made: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(made[1]) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    found = {str(path.relative_to(ROOT)) for name in PACKAGES for path in (ROOT / name).rglob("*") if path.is_file()}
    assert held == {name for name in found if "__pycache__" not in name}


def test_the_source_distribution_has_what_the_wheel_is_made_of_and_what_tests_and_deployments_read(made: tuple[Path, Path]) -> None:
    with tarfile.open(made[0]) as source:
        tops = {name.split("/")[1] for name in source.getnames() if "/" in name}
    assert tops >= {
        *PACKAGES,
        "tests",
        "deploy",
        "docs",
        "benchmarks",
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "Makefile",
        "pyproject.toml",
    }


def test_the_version_is_that_of_the_code(made: tuple[Path, Path]) -> None:
    assert made[1].name.startswith(f"leverwatch-{__version__}-")
    assert made[0].name == f"leverwatch-{__version__}.tar.gz"


def test_whatever_is_imported_is_asked_for(made: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(made[1]) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        wanted = email.message_from_bytes(wheel.read(name)).get_all("Requires-Dist", [])
    for_users = [line for line in wanted if not re.search(r"extra == ['\"](dev|bench)['\"]", line)]
    asked = {_canonical(found[0]) for line in for_users if (found := ASKED_FOR.match(line))}
    providers = importlib.metadata.packages_distributions()
    others = {COME_WITH.get(top, top) for top in _imported() - set(sys.stdlib_module_names) - set(PACKAGES)}
    assert {top for top in others if not asked & {_canonical(one) for one in providers.get(top, ())}} == set()


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _imported() -> set[str]:
    return {name.split(".")[0] for package in PACKAGES for path in (ROOT / package).rglob("*.py") for name in _names(path)}


def _names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def test_an_installed_wheel_loads_an_export_and_reports_it(scripts: Path, tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(EXPORT), encoding="utf-8")
    leverwatch, plain = scripts / "leverwatch", {"NUMBA_DISABLE_JIT": "1"}  # to compile takes half a minute
    said = run(leverwatch, "load", "one.json", "--data", "store", at=tmp_path, **plain)
    assert said.startswith("1 span stored, 0 already there, 0 rejected")
    asked = ("report", "--data", "store", "--by", "engine", "--metrics", "tpot_s", "--format", "json")
    rows = json.loads(run(leverwatch, *asked, at=tmp_path, **plain))
    tails = {"tpot_s_p50": 0.05, "tpot_s_p95": 0.05, "tpot_s_p99": 0.05}
    told = {"tpot_s_n": 1, "tpot_s_coverage": 1.0, "tpot_s_provenance": "span"}
    assert rows == [{"engine": "vllm", "requests": 1, "tpot_s": 0.05, **tails, **told}]
    answer = json.loads(
        run(leverwatch, "sql", "--data", "store", "select count(*) as n from spans", "--format", "json", at=tmp_path, **plain)
    )
    assert answer["rows"] == [[1]]


def test_an_installed_wheel_knows_its_version_scenarios_policies_and_questions(scripts: Path, tmp_path: Path) -> None:
    leverwatch = scripts / "leverwatch"
    assert run(leverwatch, "--version", at=tmp_path).split() == ["leverwatch", __version__]
    assert "batch-grows" in run(leverwatch, "demo", "--list", at=tmp_path)
    assert "speculation" in run(leverwatch, "policy", "list", at=tmp_path)
    where = run(scripts / "python", "-c", "import leverwatch; print(leverwatch.__file__)", at=tmp_path)
    assert where.startswith(str(scripts.parent))
