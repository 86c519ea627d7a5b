"""A folder and a served store of made-up rows, in which the commands of the documents are run."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import docs_store
from docs_units import Unit

from leverwatch.cli.main import main

DATA = "leverwatch-data"
LIMIT_S = 60.0
# Programs that a test may start: they write nowhere but into the folder, and reach nobody but the server.
HARMLESS = {".venv/bin/leverwatch", "leverwatch", "base64", "cat", "cp", "curl", "echo", "export", "head", "jq", "mkdir", "openssl", "tail"}
# Places of the pages, and those that stand for them here.
STAND_INS = (
    (r"https?://(127\.0\.0\.1|localhost|leverwatch):8080", "{url}"),
    (r"(?<![\w.])\.venv/bin/leverwatch", "leverwatch"),
    (r"(?<![\w.])/(?=(backup|tmp|var)/)", "./"),
    (r"var/lib/leverwatch\b", DATA),
)
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:15:{second:02d}.6805900,{300 + 7 * second},{20 + second}\n" for second in range(40)
)


@dataclass(frozen=True)
class Ran:
    """What came of a unit."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Place:
    """A folder to run in. `url` is the server of its store."""

    folder: Path
    url: str
    env: dict[str, str] = field(default_factory=dict)

    def stood_in(self, text: str) -> str:
        """A command with what stands for its places here."""
        for pattern, here in STAND_INS:
            text = re.sub(pattern, here.format(url=self.url), text)
        return text

    def objection(self, unit: Unit) -> str:
        """Why a unit may not run: what it would start, read or ask that is not of this place."""
        here = self.stood_in(unit.text)
        if strange := set(unit.programs) - HARMLESS:
            return f"starts {', '.join(sorted(strange))}, and is not listed in tests/docs_unrun.py"
        if found := re.search(r"(?<![\w:/.])(~/|/(?!dev/(null|urandom)\b)[\w.]|\.\./)\S*", here):
            return f"reaches beyond its folder: {found[0]}"
        return "" if "curl" not in unit.programs or self.url in here else "asks a server that is not ours"

    def run(self, unit: Unit) -> Ran:
        """Runs a unit: a command of ours in this process, all else by bash. Raises ValueError for one that may not run."""
        if said := self.objection(unit):
            raise ValueError(said)
        text = self.stood_in(unit.text)
        if plain := Unit(unit.place, text).plain:
            words, target = plain
            ran = self._ours(words[1:])
            if target:
                (self.folder / target).write_text(ran.out, encoding="utf-8")
            return ran
        done = subprocess.run(
            ["/bin/bash", "-ec", text], cwd=self.folder, env=self.env, text=True, capture_output=True, timeout=LIMIT_S, check=False
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def _ours(self, words: list[str]) -> Ran:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = main(words)
            except SystemExit as ended:
                status = int(str(ended.code or 0))
        return Ran(status, out.getvalue(), err.getvalue())


@contextmanager
def served(folder: Path) -> Iterator[Place]:
    """A place whose store holds the pages' made-up day, up to now, behind a server."""
    data = folder / DATA
    docs_store.make(data)
    command = [sys.executable, "-m", "leverwatch.cli.main", "serve", "--data", str(data), "--format", "json"]
    command += ["--port", "0", "--grpc-port", "0", "--otlp-http-port", "0"]
    with (folder / "server.log").open("w") as log, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            assert line, (folder / "server.log").read_text()
            yield Place(folder, json.loads(line)["url"], _environment(folder))
        finally:
            process.terminate()


def page_of(place: Place, name: str) -> Place:
    """A folder of a page's own, on the same store, with the files that pages take for granted."""
    folder = place.folder / name.replace("/", "-")
    folder.mkdir()
    (folder / DATA).symlink_to(place.folder / DATA)
    (folder / "azure_llm_2023_conv.csv").write_text(AZURE)
    (folder / "incidents.csv").write_text("lever,from,note\n")
    (folder / "policies").mkdir()
    return Place(folder, place.url, place.env)


def _environment(folder: Path) -> dict[str, str]:
    """Where bash finds `leverwatch`, and nothing of who runs the tests."""
    programs = folder / "bin"
    programs.mkdir()
    ours = programs / "leverwatch"
    ours.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m leverwatch.cli.main "$@"\n')
    ours.chmod(0o755)
    path = str(Path(__file__).parents[1])
    return {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(folder), "PYTHONPATH": path, "LANG": "C.UTF-8"}
