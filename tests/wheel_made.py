"""The source distribution and the wheel made of it, and environments that the wheel is installed into."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parent.parent
SPAN = {
    "traceId": "5b8efff798038103d269b633813fc60c",
    "spanId": "eee19b7ec3c1b174",
    "name": "llm_request",
    "kind": 2,
    "startTimeUnixNano": "1795956574545198566",
    "endTimeUnixNano": "1795956575545198566",
    "attributes": [
        {"key": "gen_ai.usage.prompt_tokens", "value": {"intValue": "7"}},
        {"key": "gen_ai.usage.completion_tokens", "value": {"intValue": "11"}},
        {"key": "gen_ai.latency.time_in_model_decode", "value": {"doubleValue": 0.5}},
    ],
}
EXPORT = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "vllm.tracing.otel"}, "spans": [SPAN]}]}]}


def environment(**more: str) -> dict[str, str]:
    """The variables of this process without those that lead to the checkout."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "LEVERWATCH"))} | more


def run(*command: str | Path, at: Path, **more: str) -> str:
    """What a command prints, which has to end well."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=900, cwd=at, env=environment(**more))
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def built(folder: Path) -> tuple[Path, Path]:
    """The source distribution, and the wheel that is made of it."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, at=folder)
    (source,), (wheel,) = folder.glob("leverwatch-*.tar.gz"), folder.glob("leverwatch-*.whl")
    return source, wheel


def beside(folder: Path, wheel: Path) -> Path:
    """The scripts of an environment that holds the wheel alone, and finds what it asks for among the packages that tests run with."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, at=folder.parent)
    run(sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--quiet", "--no-deps", wheel, at=folder.parent)
    (packages,) = folder.glob("lib/python3.*/site-packages")
    (packages / "beside.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return folder / "bin"


def alone(folder: Path, python: str, wheel: Path, *extras: str) -> Path:
    """The scripts of an environment that holds nothing but the wheel and what it asks for."""
    run(python, "-m", "venv", folder, at=folder.parent)
    wanted = f"{wheel}[{','.join(extras)}]" if extras else wheel
    run(folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", wanted, at=folder.parent)
    return folder / "bin"


def python_of(version: str) -> str | None:
    """An interpreter of a version such as 3.12 on this machine: this one, one in the path, or one of pyenv's."""
    if version == f"3.{sys.version_info.minor}":
        return sys.executable
    of_pyenv = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"), reverse=True)
    found = [str(path) for path in of_pyenv] + [path for path in [shutil.which(f"python{version}")] if path]
    return next((path for path in found if _starts(path)), None)


def _starts(python: str) -> bool:
    """Whether it is one: a shim in the path may stand for a version that nobody chose."""
    return subprocess.run([python, "-c", "import venv"], capture_output=True).returncode == 0
