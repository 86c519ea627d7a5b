"""A folder and a configuration in, a server in its own process out: started, asked where it is, and stopped once it has written all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

STARTED_S = 60.0
QUIET_S = 20.0
BUSY_SHARE = 0.05  # of a core: less is threads that wake to look whether they are to end


class Progress(NamedTuple):
    """What a server has done so far: seconds of processor time, and its files with their sizes and times."""

    cpu_s: float
    files: frozenset[tuple[str, int, int]]


def started(folder: Path, port: int, configured: str) -> subprocess.Popen[str]:
    """A server on the folder, with free OTLP ports. It ends with this process."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "demo.toml"
    config.touch(0o600)
    config.write_text(configured, encoding="utf-8")
    command = [sys.executable, "-m", "leverwatch.cli.main", "serve", "--data", str(folder), "--config", str(config), "--format", "json"]
    command += ["--with-parent"]
    command += ["--port", str(port), "--grpc-port", "0", "--otlp-http-port", "0"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LEVERWATCH_")}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)  # noqa: S603


def addresses(server: subprocess.Popen[str]) -> dict[str, str]:
    """Where the server can be reached, once it says so. Raises OSError."""
    line = server.stdout.readline() if server.stdout else ""
    if not line:
        msg = f"the server did not start (status {server.wait(STARTED_S)})"
        raise OSError(msg)
    said: dict[str, str] = json.loads(line)
    return said


def stop(server: subprocess.Popen[str], folder: Path, say: Callable[[str], None], quiet_s: float = QUIET_S) -> None:
    """Asks the server to stop and waits as long as it does something; one that does nothing for so long is ended, and that is said."""
    server.terminate()
    is_told = False
    before = _progress(server.pid, folder)
    while True:
        try:
            server.wait(quiet_s)
        except subprocess.TimeoutExpired:
            now = _progress(server.pid, folder)
            if now.files == before.files and now.cpu_s - before.cpu_s < BUSY_SHARE * quiet_s:
                server.kill()
                server.wait()
                say(f"the server did nothing for {quiet_s:g} s and did not stop: ended. What it acknowledged is in {folder / 'spool'}")
                return
            if not is_told:
                say("the server still writes what it was sent; waiting until it has stopped")
            is_told, before = True, now
        else:
            return


def _progress(pid: int, folder: Path) -> Progress:
    found = []
    for path in (Path(parent) / name for parent, _, names in os.walk(folder) for name in names):  # walk takes folders that vanish
        try:
            stat = path.stat()
        except OSError:  # it was just loaded, or renamed
            continue
        found.append((str(path), stat.st_size, stat.st_mtime_ns))
    return Progress(_cpu_s(pid), frozenset(found))


def _cpu_s(pid: int) -> float:
    """Processor time of a process so far; 0 where the system has no /proc: files alone tell there."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()  # the name before may hold anything
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
